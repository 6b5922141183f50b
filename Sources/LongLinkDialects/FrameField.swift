// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

extension FrameLayout {
  /// In which order the bytes of an integer stand.
  public enum ByteOrder: String, Hashable, Sendable, CaseIterable {
    /// The most significant byte first, as in network order.
    case big
    /// The least significant byte first.
    case little
  }

  /// Which bytes a length counts.
  public enum LengthScope: String, Hashable, Sendable, CaseIterable {
    /// The body alone.
    case body
    /// Everything behind the length field: further fields, delimiters, body and trailer.
    case rest
    /// The whole frame, from its first byte to its last.
    case frame
  }

  /// How a checksum is computed.
  public enum Checksum: String, Hashable, Sendable, CaseIterable {
    /// Adler-32 (RFC 1950), with 1 for no bytes.
    case adler32
    /// The CRC-32 of IEEE 802.3, reflected, with 0xCBF43926 for "123456789".
    case crc32
  }

  /// What a checksum is computed over.
  public enum Coverage: Hashable, Sendable {
    /// The body alone.
    case body
    /// Every field of the header but the checksum itself, in order, and then the body.
    case headerAndBody
    /// Everything from one named part to another, both included; `body` names the body.
    case range(from: String, to: String)
  }

  /// One field of a header or trailer: a name, a width and a meaning.
  public struct Field: Hashable, Sendable {
    /// What a field says.
    public enum Meaning: Hashable, Sendable {
      /// The message type, or that of a heartbeat, push or cancel.
      case type
      /// Which request and response belong together.
      case serial
      /// How a request was answered.
      case code
      /// How many bytes there are.
      case length(of: LengthScope)
      /// A checksum, zero-extended where the field is wider than its 4 bytes.
      case checksum(Checksum, over: Coverage)
      /// A number that is always the same, such as a magic number.
      case constant(UInt64)
      /// Bytes that are the same for a whole connection and differ between connections.
      case session
      /// The version of the protocol; another one is a violation.
      case version(UInt64)
      /// Bytes without a meaning: this one is written, and none is looked at.
      case filler(UInt8)
      /// The type once more, behind the first.
      case repeatedType
    }

    /// The name, unique in its shape unless the field is filler.
    public let name: String
    /// Bytes: 1, 2, 4 or 8 for an integer, 4 or 8 for a checksum, 1 to 255 for session and filler.
    public let width: Int
    /// The order of its bytes; nil for that of the layout.
    public let byteOrder: ByteOrder?
    /// What the field says.
    public let meaning: Meaning

    /// Makes a field; it is checked when a layout is made of it. Without a name it gets its
    /// meaning's.
    public init(
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
  /// A type of so many bytes.
  public static func type(_ width: Int) -> Self { Self(.type, width: width) }
  /// A serial of so many bytes.
  public static func serial(_ width: Int) -> Self { Self(.serial, width: width) }
  /// A response code of so many bytes.
  public static func code(_ width: Int) -> Self { Self(.code, width: width) }
  /// A length of so many bytes.
  public static func length(_ width: Int, of scope: FrameLayout.LengthScope = .body) -> Self {
    Self(.length(of: scope), width: width)
  }
  /// A checksum of so many bytes.
  public static func checksum(
    _ width: Int, _ algorithm: FrameLayout.Checksum, over coverage: FrameLayout.Coverage
  ) -> Self {
    Self(.checksum(algorithm, over: coverage), width: width)
  }
  /// A fixed number of so many bytes.
  public static func constant(_ width: Int, _ value: UInt64) -> Self {
    Self(.constant(value), width: width)
  }
  /// A session prefix of so many bytes.
  public static func session(_ width: Int) -> Self { Self(.session, width: width) }
  /// A version of so many bytes.
  public static func version(_ width: Int, _ value: UInt64) -> Self {
    Self(.version(value), width: width)
  }
  /// So many bytes without a meaning.
  public static func filler(_ width: Int, _ value: UInt8 = 0) -> Self {
    Self(.filler(value), width: width)
  }
  /// The type again, in as many bytes as the first time.
  public static func repeatedType(_ width: Int) -> Self { Self(.repeatedType, width: width) }

  /// The same field with another name.
  public func named(_ name: String) -> Self {
    Self(meaning, width: width, byteOrder: byteOrder, name: name)
  }

  /// The same field with a byte order of its own.
  public func ordered(_ byteOrder: FrameLayout.ByteOrder) -> Self {
    Self(meaning, width: width, byteOrder: byteOrder, name: name)
  }
}

extension FrameLayout.Field.Meaning {
  /// The word for it in the JSON form, and the name of a field that has no other.
  package var word: String {
    switch self {
    case .type: "type"
    case .serial: "serial"
    case .code: "code"
    case .length: "length"
    case .checksum: "checksum"
    case .constant: "constant"
    case .session: "session"
    case .version: "version"
    case .filler: "filler"
    case .repeatedType: "repeatedType"
    }
  }

  static let words = [
    "type", "serial", "code", "length", "checksum", "constant", "session", "version", "filler",
    "repeatedType",
  ]

  /// Whether there is at most one in a shape.
  var isUnique: Bool {
    switch self {
    case .constant, .filler: false
    case .type, .serial, .code, .length, .checksum, .session, .version, .repeatedType: true
    }
  }

  /// Whether the receiver has to know it before the body.
  var belongsInHeader: Bool {
    switch self {
    case .type, .serial, .code, .length, .session: true
    case .checksum, .constant, .version, .filler, .repeatedType: false
    }
  }

  /// The widths that a field of this meaning may have.
  func allows(width: Int) -> Bool {
    switch self {
    case .session, .filler: (1...255).contains(width)
    case .checksum: width == 4 || width == 8
    case .type, .serial, .code, .length, .constant, .version, .repeatedType:
      [1, 2, 4, 8].contains(width)
    }
  }
}
