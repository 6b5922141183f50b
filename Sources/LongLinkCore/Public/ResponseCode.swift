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

  /// Makes a code from a literal. Traps if the number is over 8,388,607.
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
  /// 401: the requester has not proved who it is.
  public static let unauthenticated: ResponseCode = 401
  /// 403: the requester is not allowed to do this.
  public static let forbidden: ResponseCode = 403
  /// 404: there is no handler for this message type.
  public static let unknownType: ResponseCode = 404
  /// 408: the deadline passed before there was a response.
  public static let deadlinePassed: ResponseCode = 408
  /// 409: the idempotency key was used for another request, which may have run. This one was not
  /// run, and a retry with the same key is refused again. In a goaway: the client has too many
  /// connections, and this is the oldest.
  public static let conflict: ResponseCode = 409
  /// 410: what the request refers to is no longer kept. A request that runs once has run, or may
  /// have, and its response is not available.
  public static let gone: ResponseCode = 410
  /// 412: a request that runs once named a key space or time that is not valid for its client here.
  public static let preconditionFailed: ResponseCode = 412
  /// 413: the body exceeds the accepted size.
  public static let tooLarge: ResponseCode = 413
  /// 429: too many requests are in progress, or memory is short. A later retry may succeed.
  public static let overloaded: ResponseCode = 429
  /// 499: the handler was cancelled and stopped; with the refused mark, it had not begun.
  public static let cancelled: ResponseCode = 499
  /// 500: the handler failed.
  public static let failed: ResponseCode = 500
  /// 503: the peer is draining and accepts no new requests. In a goaway also: the server's
  /// `authenticate` function has failed, or was late. Of a request that runs once also: the
  /// server's store of records fails.
  public static let draining: ResponseCode = 503

  /// Whether the code and its body are the application's own.
  public var isApplication: Bool { rawValue >= 1000 }

  /// The number.
  public var description: String { String(rawValue) }
}
