// SPDX-License-Identifier: Apache-2.0

/// Why a layout or a dialect cannot work: which of its parts is at fault, and what is wrong.
public struct FrameLayoutError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The part, by its path in the JSON form, such as `request.header[2]` or `serials.client`.
  public let field: String
  /// What is wrong with it, for people.
  public let reason: String

  package init(_ field: String, _ reason: String) {
    self.field = field
    self.reason = reason
  }

  /// The path of the part, and what is wrong with it.
  public var description: String { "\(field): \(reason)" }

  /// The same error, told from further out.
  package func inside(_ part: String) -> FrameLayoutError {
    FrameLayoutError("\(part).\(field)", reason)
  }

  /// The same error, where the JSON form has one shape for both.
  package var inBoth: FrameLayoutError {
    for shape in ["request", "response"] where field.hasPrefix("\(shape).") {
      return FrameLayoutError("both\(field.dropFirst(shape.count))", reason)
    }
    return self
  }
}
