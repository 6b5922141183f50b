// SPDX-License-Identifier: Apache-2.0

/// An error in a layout or a dialect: which part is wrong, and why.
public struct FrameLayoutError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The part, by its path in the JSON form, such as `request.header[2]` or `serials.client`.
  public let field: String
  /// A human-readable explanation.
  public let reason: String

  package init(_ field: String, _ reason: String) {
    self.field = field
    self.reason = reason
  }

  /// The path of the part, and what is wrong with it.
  public var description: String { "\(field): \(reason)" }

  /// Returns the same error with `part` in front of its path.
  func inside(_ part: String) -> FrameLayoutError {
    FrameLayoutError("\(part).\(field)", reason)
  }

  /// The error with its path in the short JSON form, where `both` stands for request and response.
  var inBoth: FrameLayoutError {
    for shape in ["request", "response"] where field.hasPrefix("\(shape).") {
      return FrameLayoutError("both\(field.dropFirst(shape.count))", reason)
    }
    return self
  }
}
