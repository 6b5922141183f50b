// SPDX-License-Identifier: Apache-2.0

/// Why a connection has ended.
public enum CloseReason: Hashable, Sendable {
  /// The peer violated the protocol.
  case violation(Violation)
  /// The peer ended the stream between two frames.
  case closedByPeer
  /// A short link ended without a response: the server, or something before it, ended it.
  case noResponse
  /// Nothing was read for the heartbeat's interval and timeout.
  case heartbeatLost
  /// The peer did not answer the hello in time, or the connect took too long.
  case handshakeTimeout
  /// Waiting bytes made no progress to the peer for too long.
  case stalledPeer
  /// Too many bytes waited for the peer to read them.
  case unreadOutput
  /// The connections of this server reached their memory limit, and this one held the most.
  case memoryLimit
  /// The peer cancelled requests faster than this server allows.
  case cancelLimit
  /// The connection was the oldest that was not open when this server had no place for another.
  case handshakeEvicted
  /// The system reported an error on the socket (`errno`).
  case transport(Int32)
  /// The connection could not be secured, or is no longer secure.
  case securityFailed(SecurityFailure.Code)
  /// This server did not accept the client, and said so with this code.
  case notAccepted(ResponseCode)
  /// The peer sent a goaway with this code and then ended the stream.
  case goneAway(ResponseCode)
  /// This side closed the connection on purpose.
  case closedHere
  /// This side moved to another connection or was suspended, and stopped waiting for this one's
  /// end.
  case left
}

extension CloseReason {
  /// The reasons without their values.
  package enum Kind: String, Hashable, Sendable {
    case violation
    case closedByPeer
    case noResponse
    case heartbeatLost
    case handshakeTimeout
    case stalledPeer
    case unreadOutput
    case memoryLimit
    case cancelLimit
    case handshakeEvicted
    case transport
    case securityFailed
    case notAccepted
    case goneAway
    case closedHere
    case left
  }

  /// The reason without its values, as used by counters.
  package var kind: Kind {
    switch self {
    case .violation: .violation
    case .closedByPeer: .closedByPeer
    case .noResponse: .noResponse
    case .heartbeatLost: .heartbeatLost
    case .handshakeTimeout: .handshakeTimeout
    case .stalledPeer: .stalledPeer
    case .unreadOutput: .unreadOutput
    case .memoryLimit: .memoryLimit
    case .cancelLimit: .cancelLimit
    case .handshakeEvicted: .handshakeEvicted
    case .transport: .transport
    case .securityFailed: .securityFailed
    case .notAccepted: .notAccepted
    case .goneAway: .goneAway
    case .closedHere: .closedHere
    case .left: .left
    }
  }

  /// A short name for logs and alerts, such as `heartbeatLost`, which is stable across versions.
  public var token: String { kind.rawValue }
}

extension CloseReason: CustomStringConvertible {
  /// The reason in words.
  public var description: String {
    switch self {
    case .violation(let violation): "the peer broke a rule: \(violation)"
    case .closedByPeer: "the peer closed the connection"
    case .noResponse: "the short link ended without a response"
    case .heartbeatLost: "the peer was silent for longer than the heartbeat allows"
    case .handshakeTimeout: "the peer did not complete the handshake in time"
    case .stalledPeer: "the peer stopped reading"
    case .unreadOutput: "the peer left too much unread"
    case .memoryLimit: "the server was out of memory and the peer held the most"
    case .cancelLimit: "the peer cancelled more requests per second than the server allows"
    case .handshakeEvicted: "the handshake was not complete when newer connections needed its place"
    case .transport(let code): "the connection failed (errno \(code))"
    case .securityFailed(let code): "the connection is not secure (\(code))"
    case .notAccepted(let code): "the server did not accept the client (code \(code))"
    case .goneAway(let code): Self.text(ofGoaway: code, from: "peer")
    case .closedHere: "closed on purpose"
    case .left: "abandoned for another connection or by suspending"
    }
  }

  /// What the code of a goaway says, if it came from `peer`.
  package static func text(ofGoaway code: ResponseCode, from peer: String) -> String {
    switch code {
    case .unauthenticated: "the \(peer) no longer accepts the credential (401)"
    case .forbidden: "the \(peer) does not allow this side to connect (403)"
    case .draining: "the \(peer) is draining (503)"
    default:
      (400..<500).contains(code.rawValue)
        ? "the \(peer) ended the connection because of what this side sent (\(code))"
        : "the \(peer) ended the connection (\(code))"
    }
  }
}
