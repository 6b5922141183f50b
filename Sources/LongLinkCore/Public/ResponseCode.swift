// SPDX-License-Identifier: Apache-2.0

/// The result of a request, as a number known to both sides. Numbers from 1000 on are the
/// application's.
public struct ResponseCode: RawRepresentable, Hashable, Sendable, ExpressibleByIntegerLiteral,
  CustomStringConvertible
{
  /// The number on the wire, 0 to 8,388,607 (23 bits).
  public let rawValue: UInt32

  /// Makes a code; nil for a number over 8,388,607.
  public init?(rawValue: UInt32) {
    guard rawValue <= Wire.codeMask else { return nil }
    self.rawValue = rawValue
  }

  /// Makes a code from a literal. A number over 8,388,607 is a programming error.
  public init(integerLiteral value: UInt32) {
    precondition(value <= Wire.codeMask, "a response code has 23 bits; \(value) is too large")
    rawValue = value
  }

  /// Makes a code from the low 23 bits of a number that a peer sent.
  package init(wire number: UInt32) {
    rawValue = number & Wire.codeMask
  }

  /// 200: success, with the reply as the body.
  public static let ok: ResponseCode = 200
  /// 400: the body could not be decoded.
  public static let malformed: ResponseCode = 400
  /// 401: the peer has not proved who it is.
  public static let unauthenticated: ResponseCode = 401
  /// 403: the peer is not allowed to do this.
  public static let forbidden: ResponseCode = 403
  /// 404: there is no handler for this message type.
  public static let unknownType: ResponseCode = 404
  /// 408: the deadline passed before there was a response.
  public static let deadlinePassed: ResponseCode = 408
  /// 409: the idempotency key was used for another request.
  public static let conflict: ResponseCode = 409
  /// 413: the body exceeds the accepted size.
  public static let tooLarge: ResponseCode = 413
  /// 429: too many concurrent requests.
  public static let overloaded: ResponseCode = 429
  /// 499: cancelled.
  public static let cancelled: ResponseCode = 499
  /// 500: the handler failed.
  public static let failed: ResponseCode = 500
  /// 503: the peer is draining and accepts no new requests.
  public static let draining: ResponseCode = 503

  /// Whether the code and its body are the application's own.
  public var isApplication: Bool { rawValue >= 1000 }

  /// The number.
  public var description: String { String(rawValue) }
}

/// The number that identifies the content of a request or push: 0 to 16,777,215.
public struct MessageType: RawRepresentable, Hashable, Sendable, ExpressibleByIntegerLiteral,
  CustomStringConvertible
{
  /// The number on the wire, 0 to 16,777,215 (24 bits). The type of an endpoint that no link
  /// carries, such as one of HTTP, has a larger number.
  public let rawValue: UInt32

  /// Makes a message type; nil for a number over 16,777,215.
  public init?(rawValue: UInt32) {
    guard rawValue <= Wire.tagMask else { return nil }
    self.rawValue = rawValue
  }

  /// Makes a message type from a literal. A number over 16,777,215 is a programming error.
  public init(integerLiteral value: UInt32) {
    precondition(value <= Wire.tagMask, "a message type has 24 bits; \(value) is too large")
    rawValue = value
  }

  package init(tag: UInt32) {
    rawValue = tag & Wire.tagMask
  }

  /// Makes the type of calls that are not carried by a link: a number above those of the wire,
  /// computed from a name. It is the same in every run.
  package init(localName name: String) {
    // FNV-1a.
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in name.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    let first = UInt64(Wire.tagMask) + 1
    rawValue = UInt32(first + hash % (UInt64(UInt32.max) + 1 - first))
  }

  /// Whether the type is a link's, and not one that was computed from a name.
  package var isOnWire: Bool { rawValue <= Wire.tagMask }

  /// The number.
  public var description: String { String(rawValue) }
}
