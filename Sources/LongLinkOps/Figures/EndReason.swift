// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkCore
internal import LongLinkDriver

/// Why a connection has ended, in the words of this port.
enum EndReason: String, CaseIterable, Sendable {
  /// The client closed it, or left it.
  case peer
  /// It was reset, cut off or lost its network.
  case reset
  case violation
  case heartbeat
  /// No whole first frame came in time.
  case firstFrame = "first_frame"
  /// The server did not accept the client, or could not secure the connection.
  case refused
  /// The client's credential has expired or was revoked.
  case credential
  case drained
  case `operator`
  /// The application has closed it.
  case application
  case shutdown
  /// It exceeded a limit of the server.
  case limit

  /// The reason of a link that has ended.
  init(_ link: LinkRecord, _ reason: CloseReason) {
    switch reason {
    case .violation(let violation):
      self = violation.rule == .firstFrameTimeout ? .firstFrame : .violation
    case .handshakeTimeout: self = .firstFrame
    case .heartbeatLost: self = .heartbeat
    case .transport: self = .reset
    case .securityFailed: self = link.opened == nil ? .refused : .reset
    case .notAccepted: self = .refused
    case .stalledPeer, .unreadOutput, .memoryLimit, .cancelLimit, .handshakeEvicted: self = .limit
    case .closedByPeer, .noResponse, .goneAway, .left:
      self = link.departure.map(EndReason.init) ?? .peer
    case .closedHere:
      self = link.departure.map(EndReason.init) ?? (link.peerHasLeft ? .peer : .application)
    }
  }

  private init(_ departure: LinkRecord.Departure) {
    switch departure {
    case .drained: self = .drained
    case .ended: self = .operator
    case .shutdown: self = .shutdown
    case .credential: self = .credential
    case .limit: self = .limit
    }
  }
}

/// How the handshake of a connection ended.
enum HandshakeOutcome: String, CaseIterable, Sendable {
  case accepted
  /// The server did not want the client, or had no place for it.
  case refused
  /// The client broke it off, or broke a rule.
  case failed

  /// The outcome for a link that ended before it opened.
  init(of reason: CloseReason) {
    switch reason {
    case .notAccepted, .handshakeEvicted, .memoryLimit, .closedHere: self = .refused
    default: self = .failed
    }
  }
}
#endif
