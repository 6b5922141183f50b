// SPDX-License-Identifier: Apache-2.0

/// Why a connection has ended.
public enum CloseReason: Hashable, Sendable {
  /// The peer violated the protocol.
  case violation(Violation)
  /// The peer ended the stream between two frames.
  case closedByPeer
  /// The server, or a proxy on the way to it, ended a short link without a response.
  case noResponse
  /// Nothing was read for the heartbeat's timeout after a ping. In a dialect in which only the peer
  /// sends pings, nothing was read for the interval plus the timeout.
  case heartbeatLost
  /// The connect and its handshake took longer than the client's `timeouts.connect`.
  case handshakeTimeout
  /// Bytes waited to be sent, and the peer's system took none for the heartbeat's interval plus its
  /// timeout.
  case stalledPeer
  /// The peer left too much unread: more than `limits.maxUnreadOutput` waited for it, or a
  /// broadcast that closes slow connections found no room.
  case unreadOutput
  /// The connections of this server reached its memory limit, and this one was evicted. The server
  /// chooses by how much a connection holds, and for how long it has made no progress.
  case memoryLimit
  /// The peer cancelled requests faster than the server's `limits.maxCancelsPerSecond` allows.
  case cancelLimit
  /// The connection was the oldest that was not open when this server had no place for another.
  case handshakeEvicted
  /// The system reported an error on the socket (`errno`).
  case transport(Int32)
  /// The connection could not be secured, or is no longer secure.
  case securityFailed(SecurityFailure.Code)
  /// This server did not accept the client, and said so with this code.
  case notAccepted(ResponseCode)
  /// The peer announced the end with a goaway that has this code.
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
