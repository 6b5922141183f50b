// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore

/// A stable number for a kind of failure, for programs, logs and help pages.
///
/// Codes from 1 to 99 are failures on this side. Codes from 300 to 599 are the peer's response
/// codes; those from 300 to 399 are redirects of HTTP that were not followed. Codes from 1000 on
/// are the application's.
public struct CallErrorCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// The number.
  public let rawValue: UInt32

  /// Makes a code from a number.
  public init(rawValue: UInt32) {
    self.rawValue = rawValue
  }

  /// 1: there is no connection.
  public static let notConnected = CallErrorCode(rawValue: 1)
  /// 2: connecting to the server failed.
  public static let connectFailed = CallErrorCode(rawValue: 2)
  /// 3: the connection ended before the response came.
  public static let connectionLost = CallErrorCode(rawValue: 3)
  /// 4: the deadline passed.
  public static let deadlineExceeded = CallErrorCode(rawValue: 4)
  /// 5: the caller cancelled.
  public static let cancelled = CallErrorCode(rawValue: 5)
  /// 6: bytes were damaged in transit.
  public static let corrupted = CallErrorCode(rawValue: 6)
  /// 7: one side broke a rule of the protocol.
  public static let protocolViolation = CallErrorCode(rawValue: 7)
  /// 8: the body is larger than the peer accepts.
  public static let tooLarge = CallErrorCode(rawValue: 8)
  /// 9: the message cannot be encoded.
  public static let encodingFailed = CallErrorCode(rawValue: 9)
  /// 10: the response does not decode as the expected message.
  public static let decodingFailed = CallErrorCode(rawValue: 10)
  /// 11: a queue or buffer of this side is full.
  public static let overloaded = CallErrorCode(rawValue: 11)
  /// 12: the client was closed.
  public static let closed = CallErrorCode(rawValue: 12)
  /// 13: a configuration is invalid.
  public static let invalidConfiguration = CallErrorCode(rawValue: 13)
  /// 14: the dialect, or the peer, has no such operation.
  public static let unsupported = CallErrorCode(rawValue: 14)
  /// 15: the items of a stream have ended.
  public static let streamEnded = CallErrorCode(rawValue: 15)
  /// 16: the connection could not be secured.
  public static let securityFailed = CallErrorCode(rawValue: 16)
  /// 17: the server did not accept this client.
  public static let notAccepted = CallErrorCode(rawValue: 17)
  /// 18: an interceptor has failed the call.
  public static let intercepted = CallErrorCode(rawValue: 18)
  /// 99: a failure that this version has no code for.
  public static let other = CallErrorCode(rawValue: 99)

  private static let ofLink: [LongLinkError.Code: CallErrorCode] = [
    .notConnected: .notConnected, .connectFailed: .connectFailed,
    .connectionLost: .connectionLost, .deadlineExceeded: .deadlineExceeded,
    .cancelled: .cancelled, .corrupted: .corrupted, .protocolViolation: .protocolViolation,
    .tooLarge: .tooLarge, .encodingFailed: .encodingFailed, .decodingFailed: .decodingFailed,
    .overloaded: .overloaded, .closed: .closed, .invalidConfiguration: .invalidConfiguration,
    .unsupported: .unsupported, .streamEnded: .streamEnded,
    .securityFailed: .securityFailed, .notAccepted: .notAccepted, .intercepted: .intercepted,
  ]

  /// Makes the code of a `LongLinkError`.
  public init(_ error: LongLinkError) {
    if error.code == .rejected, let response = error.response {
      self.init(response)
    } else {
      self = Self.ofLink[error.code] ?? .other
    }
  }

  /// Makes the code of a response: `other` for a number that is neither from 300 to 599 nor from
  /// 1000 on, because lower numbers mean failures on this side.
  public init(_ response: ResponseCode) {
    let isOfPeer = (300...599).contains(response.rawValue) || response.rawValue >= 1000
    self.init(rawValue: isOfPeer ? response.rawValue : CallErrorCode.other.rawValue)
  }

  /// The number.
  public var description: String { String(rawValue) }
}
