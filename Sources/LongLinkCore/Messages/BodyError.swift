// SPDX-License-Identifier: Apache-2.0

/// Why a value could not be written as a body, or a body could not be read as a value.
public struct BodyError: Error, Hashable, Sendable {
  /// What was wrong.
  public var code: Code
  /// The byte of the body where it was found, counted from 0; nil where that is not known.
  public var offset: Int?
  /// What else there is to say, for a person; never contains bytes of the body.
  public var detail: String?

  /// Makes an error; `offset` counts bytes from the beginning of the body.
  public init(_ code: Code, at offset: Int? = nil, detail: String? = nil) {
    self.code = code
    self.offset = offset
    self.detail = detail
  }
}

extension BodyError {
  /// A kind of mistake in a body; later versions may add kinds.
  public struct Code: Hashable, Sendable {
    private let name: StaticName

    private enum StaticName: String {
      case malformed
      case truncated
      case wrongType = "wrong type"
      case invalidUTF8 = "invalid UTF-8"
      case interiorNUL = "NUL in a string"
      case tooDeep = "nested too deep"
      case tooLarge = "too large"
      case notRepresentable = "not representable"
    }

    private init(_ name: StaticName) {
      self.name = name
    }

    /// The body breaks the rules of its encoding.
    public static let malformed = Code(.malformed)
    /// The body ends inside a value, or a length in it points past its end.
    public static let truncated = Code(.truncated)
    /// A field holds another kind of value than its definition says.
    public static let wrongType = Code(.wrongType)
    /// A string is not UTF-8.
    public static let invalidUTF8 = Code(.invalidUTF8)
    /// A string contains U+0000, which would cut it short where strings end with NUL.
    public static let interiorNUL = Code(.interiorNUL)
    /// Messages are nested deeper than the decoder goes.
    public static let tooDeep = Code(.tooDeep)
    /// The value needs more bytes of body or of memory than it may have.
    public static let tooLarge = Code(.tooLarge)
    /// The value, or the body, says something that the other form cannot hold.
    public static let notRepresentable = Code(.notRepresentable)
  }
}

extension BodyError.Code: CustomStringConvertible {
  /// The kind in a few words.
  public var description: String {
    name.rawValue
  }
}

extension BodyError: CustomStringConvertible {
  /// The kind, the place and the detail in one line.
  public var description: String {
    var text = code.description
    if let offset { text += " at byte \(offset)" }
    if let detail { text += ": \(detail)" }
    return text
  }
}
