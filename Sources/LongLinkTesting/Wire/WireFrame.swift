// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// One frame on the wire, valid or not.
public struct WireFrame: Hashable, Sendable {
  /// The kind of a frame, which has six bits on the wire.
  public struct Kind: RawRepresentable, Hashable, Sendable {
    /// The number on the wire, 0 to 63.
    public let rawValue: UInt8

    /// Makes a kind, even an unknown one. Bits above the sixth are cut off.
    public init(rawValue: UInt8) {
      self.rawValue = rawValue & 0x3F
    }
  }

  /// The frame's kind.
  public var kind: Kind
  /// The message type, or the code and the refused bit of a response. It has 24 bits on the wire:
  /// higher ones are not sent.
  public var tag: UInt32
  /// The serial, which links a response to its request.
  public var serial: UInt32
  /// Whether the message continues in another frame.
  public var moreFollows: Bool
  /// Whether the body begins with a metadata block.
  public var hasMetadata: Bool
  /// Everything after the header: the metadata block, if any, and the payload.
  public var body: [UInt8]

  /// Makes a frame without checking anything.
  public init(
    _ kind: Kind,
    tag: UInt32 = 0,
    serial: UInt32 = 0,
    moreFollows: Bool = false,
    hasMetadata: Bool = false,
    body: [UInt8] = []
  ) {
    self.kind = kind
    self.tag = tag
    self.serial = serial
    self.moreFollows = moreFollows
    self.hasMetadata = hasMetadata
    self.body = body
  }

  /// Makes a frame from metadata, if any, and a payload. Metadata that takes more than 65,535 bytes
  /// traps.
  public init(
    _ kind: Kind,
    tag: UInt32,
    serial: UInt32,
    metadata: WireMetadata?,
    payload: [UInt8]
  ) {
    self.init(
      kind,
      tag: tag,
      serial: serial,
      hasMetadata: metadata != nil,
      body: (metadata?.block ?? []) + payload
    )
  }
}

extension WireFrame.Kind: CustomStringConvertible {
  /// A request, of either side.
  public static let request = Self(rawValue: 0x00)
  /// The response to a request.
  public static let response = Self(rawValue: 0x01)
  /// An item of a stream.
  public static let item = Self(rawValue: 0x02)
  /// The end of a requester's items.
  public static let end = Self(rawValue: 0x03)
  /// The cancel of a request.
  public static let cancel = Self(rawValue: 0x04)
  /// A grant of credit for more items.
  public static let credit = Self(rawValue: 0x05)
  /// A message without a response.
  public static let push = Self(rawValue: 0x06)
  /// The renewal of a client's credential, or the server's answer to it.
  public static let renewal = Self(rawValue: 0x07)
  /// A question to the peer whether it is alive.
  public static let ping = Self(rawValue: 0x08)
  /// The answer to a ping.
  public static let pong = Self(rawValue: 0x09)
  /// The client's first frame.
  public static let hello = Self(rawValue: 0x0A)
  /// The server's response to a hello.
  public static let welcome = Self(rawValue: 0x0B)
  /// A notice that its sender takes no new requests.
  public static let goaway = Self(rawValue: 0x0C)

  /// The kind's name; the number in hexadecimal for an unknown kind.
  public var description: String {
    switch FrameKind(rawValue: rawValue) {
    case .ignorable, nil: "0x" + String(rawValue, radix: 16)
    case let kind?: "\(kind)"
    }
  }
}

// MARK: - On the wire

extension WireFrame {
  /// The length of the header in bytes.
  package static let headerLength = 16

  /// The frame's bytes in the native protocol, header first, with a correct checksum.
  public var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Self.headerLength + body.count)
    let flags: UInt32 = (hasMetadata ? 1 << 31 : 0) | (moreFollows ? 1 << 30 : 0)
    bytes.appendWord(flags | UInt32(kind.rawValue) << 24 | tag & Wire.tagMask)
    bytes.appendWord(serial)
    bytes.appendWord(UInt32(truncatingIfNeeded: body.count))
    bytes.appendWord(Self.checksum(header: bytes, body: body[...]))
    bytes += body
    return bytes
  }

  /// The frame's bytes in the native protocol, with a wrong checksum.
  public var corruptBytes: [UInt8] {
    var bytes = bytes
    bytes[15] ^= 0x01
    return bytes
  }

  /// The metadata at the beginning of the body; nil if it is absent or invalid.
  public var metadata: WireMetadata? {
    guard hasMetadata, let block = blockLength else { return nil }
    return WireMetadata(encoded: body[2..<block])
  }

  /// The body without the metadata block; the whole body if there is no block, or if its length is
  /// invalid.
  public var payload: [UInt8] {
    guard hasMetadata, let block = blockLength else { return body }
    return Array(body[block...])
  }

  private var blockLength: Int? {
    guard body.count >= 2 else { return nil }
    let length = 2 + (Int(body[0]) << 8 | Int(body[1]))
    return length <= body.count ? length : nil
  }

  /// The Adler-32 of a header's first twelve bytes, followed by the body.
  static func checksum(header: [UInt8], body: ArraySlice<UInt8>) -> UInt32 {
    // The elements are bytes: there is no padding between them.
    let sum = unsafe Adler32.checksum(of: header.span.bytes)
    return unsafe Adler32.checksum(of: body.span.bytes, continuing: sum)
  }
}

extension [UInt8] {
  /// Appends four bytes in network order.
  package mutating func appendWord(_ word: UInt32) {
    for shift in [24, 16, 8, 0] as [UInt32] { append(UInt8(truncatingIfNeeded: word >> shift)) }
  }

  /// The four bytes at an index, in network order.
  package func word(at index: Int) -> UInt32 {
    self[index..<index + 4].reduce(0) { $0 << 8 | UInt32($1) }
  }
}
