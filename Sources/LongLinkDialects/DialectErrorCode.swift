// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// A dialect's code for a failed request.
public struct DialectErrorCode: Hashable, Sendable {
  /// The number on the wire.
  public let code: UInt32
  /// A short name for errors and logs, such as `unknownType`; may be empty.
  public let name: String
  /// A human-readable explanation; empty by default.
  public let text: String
  /// The library's code for the same failure; nil if that is the code with the same number. Needed
  /// if `code` is 200 or above 8,388,607.
  public let native: ResponseCode?

  /// Makes the entry for one code in a table of codes. It is checked when a dialect is made from
  /// the table.
  public init(_ code: UInt32, _ name: String, _ text: String = "", native: ResponseCode? = nil) {
    self.code = code
    self.name = name
    self.text = text
    self.native = native
  }

  /// The number, name and explanation in one line.
  var summary: String {
    let title = name.isEmpty ? "\(code)" : "\(code) \(name)"
    return text.isEmpty ? title : "\(title): \(text)"
  }

  var meaning: ResponseCode { native ?? ResponseCode(rawValue: code) ?? .failed }
}
