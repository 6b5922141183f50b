// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

extension FrameLayout {
  /// The order of an integer's bytes.
  public enum ByteOrder: String, Hashable, Sendable, CaseIterable {
    /// The most significant byte first, as in network order.
    case big
    /// The least significant byte first.
    case little
  }

  /// The bytes that a length counts.
  public enum LengthScope: String, Hashable, Sendable, CaseIterable {
    /// The bytes of the body alone.
    case body
    /// All bytes after the length field: other fields, delimiters, body and trailer.
    case rest
    /// All bytes of the frame, from its first to its last.
    case frame
  }

  /// The algorithm of a checksum.
  public enum Checksum: String, Hashable, Sendable, CaseIterable {
    /// Adler-32 (RFC 1950), which is 1 for no bytes.
    case adler32
    /// The CRC-32 of IEEE 802.3, reflected, which is 0xCBF43926 for "123456789".
    case crc32
  }

  /// The bytes that a checksum covers.
  public enum Coverage: Hashable, Sendable {
    /// The bytes of the body alone.
    case body
    /// All fields of the header except the checksum itself, in order, and then the body.
    case headerAndBody
    /// Everything from the field named `from` to the field named `to`, including both, without
    /// delimiters. The name `body` stands for the body.
    case range(from: String, to: String)
  }

  /// One field of a header or trailer: its name, width, byte order and meaning. Each of its static
  /// functions, such as `type(_:)`, makes a field with one meaning.
  public struct Field: Hashable, Sendable {
    /// The meaning of a field.
    package enum Meaning: Hashable, Sendable {
      /// The message type, or the type of a heartbeat, push or cancel.
      case type
      /// The number that a response shares with its request.
      case serial
      /// The response code.
      case code
      /// The number of bytes in the given scope.
      case length(of: LengthScope)
      /// A checksum, zero-extended if the field is wider than 4 bytes.
      case checksum(Checksum, over: Coverage)
      /// A constant, such as a magic number.
      case constant(UInt64)
      /// A token: bytes that are constant in a connection, and usually differ between connections.
      case token
      /// The version of the protocol; another one is a violation.
      case version(UInt64)
      /// Bytes without a meaning: this value is written, and receivers ignore them.
      case filler(UInt8)
      /// The message type once more, after the type field.
      case repeatedType
    }

    /// The name: 1 to 32 ASCII letters, digits, - and _, but not `body`. By default it is the word
    /// for the meaning, such as `type`. It is unique in its shape, unless the field is filler.
    public let name: String
    /// The width in bytes: 1, 2, 4 or 8 for an integer, 4 or 8 for a checksum, and 1 to 255 for a
    /// token or filler.
    public let width: Int
    /// The byte order of the field; nil for that of the layout.
    public let byteOrder: ByteOrder?
    /// The meaning of the field.
    package let meaning: Meaning

    /// Makes a field; it is checked when a layout is made from it. The default name is the word for
    /// its meaning.
    package init(
      _ meaning: Meaning, width: Int, byteOrder: ByteOrder? = nil, name: String? = nil
    ) {
      self.name = name ?? meaning.word
      self.width = width
      self.byteOrder = byteOrder
      self.meaning = meaning
    }
  }
}

extension FrameLayout.Field {
  /// Makes a field of `width` bytes for the message type, or the type of a heartbeat, push or
  /// cancel.
  public static func type(_ width: Int) -> Self { Self(.type, width: width) }
  /// Makes a field of `width` bytes for the number that a response shares with its request.
  public static func serial(_ width: Int) -> Self { Self(.serial, width: width) }
  /// Makes a field of `width` bytes for the response code.
  public static func code(_ width: Int) -> Self { Self(.code, width: width) }
  /// Makes a field of `width` bytes for a length: the number of bytes in the given scope.
  public static func length(_ width: Int, of scope: FrameLayout.LengthScope = .body) -> Self {
    Self(.length(of: scope), width: width)
  }
  /// Makes a field of `width` bytes for a checksum, zero-extended if the field is wider than 4
  /// bytes.
  public static func checksum(
    _ width: Int, _ algorithm: FrameLayout.Checksum, over coverage: FrameLayout.Coverage
  ) -> Self {
    Self(.checksum(algorithm, over: coverage), width: width)
  }
  /// Makes a field of `width` bytes for a constant, such as a magic number. Another value is a
  /// violation.
  public static func constant(_ width: Int, _ value: UInt64) -> Self {
    Self(.constant(value), width: width)
  }
  /// Makes a field for a token: `width` bytes that are constant in a connection, and usually differ
  /// between connections. Receivers do not check them.
  public static func token(_ width: Int) -> Self { Self(.token, width: width) }
  /// Makes a field of `width` bytes for the version of the protocol. Another value is a violation.
  public static func version(_ width: Int, _ value: UInt64) -> Self {
    Self(.version(value), width: width)
  }
  /// Makes a field of `width` bytes without a meaning. Each byte is written as `value`, and ignored
  /// by receivers.
  public static func filler(_ width: Int, _ value: UInt8 = 0) -> Self {
    Self(.filler(value), width: width)
  }
  /// Makes a field of `width` bytes that repeats the message type. It must come after the type
  /// field, and be as wide. Another value is a violation.
  public static func repeatedType(_ width: Int) -> Self { Self(.repeatedType, width: width) }

  /// Returns the same field with another name.
  public func named(_ name: String) -> Self {
    Self(meaning, width: width, byteOrder: byteOrder, name: name)
  }

  /// Returns the same field with its own byte order.
  public func ordered(_ byteOrder: FrameLayout.ByteOrder) -> Self {
    Self(meaning, width: width, byteOrder: byteOrder, name: name)
  }
}

extension FrameLayout.Field.Meaning {
  /// The word for this meaning in the JSON form, and the default name of such a field.
  package var word: String {
    switch self {
    case .type: "type"
    case .serial: "serial"
    case .code: "code"
    case .length: "length"
    case .checksum: "checksum"
    case .constant: "constant"
    case .token: "token"
    case .version: "version"
    case .filler: "filler"
    case .repeatedType: "repeatedType"
    }
  }

  static let words = [
    "type", "serial", "code", "length", "checksum", "constant", "token", "version", "filler",
    "repeatedType",
  ]

  /// Whether a shape can have at most one field of this meaning.
  var isUnique: Bool {
    switch self {
    case .constant, .filler: false
    case .type, .serial, .code, .length, .checksum, .token, .version, .repeatedType: true
    }
  }

  /// Whether the receiver needs a field of this meaning before the body.
  var belongsInHeader: Bool {
    switch self {
    case .type, .serial, .code, .length, .token: true
    case .checksum, .constant, .version, .filler, .repeatedType: false
    }
  }

  /// Whether a field of this meaning can have this width.
  func allows(width: Int) -> Bool {
    switch self {
    case .token, .filler: (1...255).contains(width)
    case .checksum: width == 4 || width == 8
    case .type, .serial, .code, .length, .constant, .version, .repeatedType:
      [1, 2, 4, 8].contains(width)
    }
  }
}
