// SPDX-License-Identifier: Apache-2.0

/// Why a connection has ended.
public enum CloseReason: Hashable, Sendable {
  /// The peer broke a rule of the wire.
  case violation(Violation)
  /// The peer ended the stream between two frames.
  case closedByPeer
  /// Nothing was read for the heartbeat's interval and timeout.
  case heartbeatLost
  /// The peer did not answer the hello in time, or the connect took too long.
  case handshakeTimeout
  /// The peer took no byte of what was waiting to be written for too long.
  case stalledPeer
  /// More bytes waited for the peer than it may leave unread.
  case unreadOutput
  /// All connections of this server together held as much memory as they may, and this one the
  /// most.
  case memoryLimit
  /// The system reported an error on the socket (`errno`).
  case transport(Int32)
  /// The peer said goaway with this code, and then its end of the stream.
  case goneAway(ResponseCode)
  /// This side closed on purpose.
  case closedHere
  /// This side left it for another connection, or was suspended, and did not wait any longer.
  case left
}

extension CloseReason {
  /// The reasons without their values.
  public enum Kind: String, Hashable, Sendable {
    /// See ``CloseReason/violation(_:)``.
    case violation
    /// See ``CloseReason/closedByPeer``.
    case closedByPeer
    /// See ``CloseReason/heartbeatLost``.
    case heartbeatLost
    /// See ``CloseReason/handshakeTimeout``.
    case handshakeTimeout
    /// See ``CloseReason/stalledPeer``.
    case stalledPeer
    /// See ``CloseReason/unreadOutput``.
    case unreadOutput
    /// See ``CloseReason/memoryLimit``.
    case memoryLimit
    /// See ``CloseReason/transport(_:)``.
    case transport
    /// See ``CloseReason/goneAway(_:)``.
    case goneAway
    /// See ``CloseReason/closedHere``.
    case closedHere
    /// See ``CloseReason/left``.
    case left
  }

  /// The reason without its values, as counters tell reasons apart.
  public var kind: Kind {
    switch self {
    case .violation: .violation
    case .closedByPeer: .closedByPeer
    case .heartbeatLost: .heartbeatLost
    case .handshakeTimeout: .handshakeTimeout
    case .stalledPeer: .stalledPeer
    case .unreadOutput: .unreadOutput
    case .memoryLimit: .memoryLimit
    case .transport: .transport
    case .goneAway: .goneAway
    case .closedHere: .closedHere
    case .left: .left
    }
  }

  /// A short, stable name for logs and alerts, such as `heartbeatLost`: that of the kind, which
  /// stays the same in later versions.
  public var token: String { kind.rawValue }
}

extension CloseReason: CustomStringConvertible {
  /// The reason in words.
  public var description: String {
    switch self {
    case .violation(let violation): "the peer broke a rule: \(violation)"
    case .closedByPeer: "the peer closed the connection"
    case .heartbeatLost: "the peer was silent for longer than the heartbeat allows"
    case .handshakeTimeout: "the peer did not complete the handshake in time"
    case .stalledPeer: "the peer stopped reading"
    case .unreadOutput: "the peer left too much unread"
    case .memoryLimit: "the peer held more memory than others while the server had none left"
    case .transport(let code): "the connection failed (errno \(code))"
    case .goneAway(let code): "the peer went away with code \(code)"
    case .closedHere: "closed on purpose"
    case .left: "left before it had ended"
    }
  }
}
