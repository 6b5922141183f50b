// SPDX-License-Identifier: Apache-2.0

/// A code of a dialect that says that a request failed.
public struct DialectErrorCode: Hashable, Sendable {
  /// The number on the wire.
  public let code: UInt32
  /// A short name, such as `unknownType`.
  public let name: String
  /// What it means, for people.
  public let text: String
  /// The code that stands for it in the library; nil for that with the same number.
  public let native: ResponseCode?

  /// Makes an entry of a table of codes; it is checked when a dialect is made of it.
  public init(_ code: UInt32, _ name: String, _ text: String = "", native: ResponseCode? = nil) {
    self.code = code
    self.name = name
    self.text = text
    self.native = native
  }

  /// Number, name and meaning in one line.
  package var summary: String {
    let title = name.isEmpty ? "\(code)" : "\(code) \(name)"
    return text.isEmpty ? title : "\(title): \(text)"
  }

  package var meaning: ResponseCode { native ?? ResponseCode(rawValue: code) }
}
