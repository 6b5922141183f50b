// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore

/// A number that stays the same for a kind of failure, for programs, logs and help pages.
///
/// 1 to 99 are failures on this side; 400 to 599 are what the peer answered, by its response code;
/// from 1000 on they are the application's own.
public struct CallErrorCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// The number.
  public let rawValue: UInt32

  /// Makes a code of a number.
  public init(rawValue: UInt32) {
    self.rawValue = rawValue
  }

  /// 1: there is no connection.
  public static let notConnected = CallErrorCode(rawValue: 1)
  /// 2: the connect came to nothing.
  public static let connectFailed = CallErrorCode(rawValue: 2)
  /// 3: the connection ended before the answer came.
  public static let connectionLost = CallErrorCode(rawValue: 3)
  /// 4: the deadline passed.
  public static let deadlineExceeded = CallErrorCode(rawValue: 4)
  /// 5: the caller cancelled.
  public static let cancelled = CallErrorCode(rawValue: 5)
  /// 6: bytes were damaged on their way.
  public static let corrupted = CallErrorCode(rawValue: 6)
  /// 7: one side broke a rule of the protocol.
  public static let protocolViolation = CallErrorCode(rawValue: 7)
  /// 8: the body is larger than the peer accepts.
  public static let tooLarge = CallErrorCode(rawValue: 8)
  /// 9: the message has no encoding.
  public static let encodingFailed = CallErrorCode(rawValue: 9)
  /// 10: the reply is not the message that was expected.
  public static let decodingFailed = CallErrorCode(rawValue: 10)
  /// 11: more waits than may.
  public static let overloaded = CallErrorCode(rawValue: 11)
  /// 12: the client was closed.
  public static let closed = CallErrorCode(rawValue: 12)
  /// 13: a configuration is wrong.
  public static let invalidConfiguration = CallErrorCode(rawValue: 13)
  /// 14: the protocol that is spoken has no word for what was asked.
  public static let unsupported = CallErrorCode(rawValue: 14)
  /// 99: none of those that this version knows.
  public static let other = CallErrorCode(rawValue: 99)

  private static let ofLink: [LongLinkError.Code: CallErrorCode] = [
    .notConnected: .notConnected, .connectFailed: .connectFailed,
    .connectionLost: .connectionLost, .deadlineExceeded: .deadlineExceeded,
    .cancelled: .cancelled, .corrupted: .corrupted, .protocolViolation: .protocolViolation,
    .tooLarge: .tooLarge, .encodingFailed: .encodingFailed, .decodingFailed: .decodingFailed,
    .overloaded: .overloaded, .closed: .closed, .invalidConfiguration: .invalidConfiguration,
    .unsupported: .unsupported,
  ]

  /// The code of an error of the link.
  public init(_ error: LongLinkError) {
    if error.code == .rejected, let response = error.response {
      self.init(response)
    } else {
      self = Self.ofLink[error.code] ?? .other
    }
  }

  /// The code of what a peer answered: `other` for a number that is neither from 400 to 599 nor
  /// from 1000 on, since those below mean failures of this side.
  public init(_ response: ResponseCode) {
    let isOfPeer = (400...599).contains(response.rawValue) || response.rawValue >= 1000
    self.init(rawValue: isOfPeer ? response.rawValue : CallErrorCode.other.rawValue)
  }

  /// The number.
  public var description: String { String(rawValue) }
}
