// SPDX-License-Identifier: Apache-2.0

/// Why a value could not be written as a body, or a body could not be read as a value.
public struct BodyError: Error, Hashable, Sendable {
  /// The kind of mistake.
  public var code: Code
  /// The byte of the body where the mistake was found, counted from 0; nil if that is not known.
  public var offset: Int?
  /// A human-readable detail; never contains bytes of the body.
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
      case outOfMemory = "out of memory"
      case notRepresentable = "not representable"
    }

    private init(_ name: StaticName) {
      self.name = name
    }

    /// The body breaks a rule of its encoding.
    public static let malformed = Code(.malformed)
    /// The body ends inside a value, or a length in it points past its end.
    public static let truncated = Code(.truncated)
    /// A field contains a value of another type than its definition.
    public static let wrongType = Code(.wrongType)
    /// A string is not UTF-8.
    public static let invalidUTF8 = Code(.invalidUTF8)
    /// A string contains U+0000, which would truncate it in C.
    public static let interiorNUL = Code(.interiorNUL)
    /// Messages are nested deeper than the decoder supports.
    public static let tooDeep = Code(.tooDeep)
    /// The body, or the memory for decoding it, would exceed its limit.
    public static let tooLarge = Code(.tooLarge)
    /// The server's `limits.memoryLimit` leaves no room for the value. The same body may decode
    /// later.
    public static let outOfMemory = Code(.outOfMemory)
    /// The encoding cannot express the value, or the type cannot hold what the body contains.
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
  /// The kind, the offset and the detail in one line.
  public var description: String {
    var text = code.description
    if let offset { text += " at byte \(offset)" }
    if let detail { text += ": \(detail)" }
    return text
  }
}
