// SPDX-License-Identifier: Apache-2.0

/// The timers of a connection.
package enum ConnectionTimer: Int, CaseIterable, Sendable {
  /// Server: the first frame must have arrived. Client: the welcome must have arrived. On an open
  /// connection of a server: another renewal is not decided about until then.
  case handshake
  /// The current frame must be complete.
  case frame
  /// A message must have made progress.
  case message
  /// A ping is sent, or the peer is considered lost.
  case heartbeat
  /// The bytes waiting to be written must have made progress.
  case writing
  /// A closing connection stops waiting for the peer's end of stream.
  case linger
}

/// The due time of each timer; the earliest is the connection's deadline.
package struct ConnectionTimers: Equatable, Sendable {
  // Separate fields, because an array would be an allocation for each connection.
  private var handshake = LinkInstant.distantFuture
  private var frame = LinkInstant.distantFuture
  private var message = LinkInstant.distantFuture
  private var heartbeat = LinkInstant.distantFuture
  private var writing = LinkInstant.distantFuture
  private var linger = LinkInstant.distantFuture
  /// The due time of the earliest timer; `.distantFuture` if no timer is set.
  package private(set) var deadline = LinkInstant.distantFuture

  package init() {}

  /// When the timer is due; `.distantFuture` if it is not set.
  package subscript(timer: ConnectionTimer) -> LinkInstant {
    get {
      switch timer {
      case .handshake: handshake
      case .frame: frame
      case .message: message
      case .heartbeat: heartbeat
      case .writing: writing
      case .linger: linger
      }
    }
    set {
      let old = self[timer]
      guard old != newValue else { return }
      switch timer {
      case .handshake: handshake = newValue
      case .frame: frame = newValue
      case .message: message = newValue
      case .heartbeat: heartbeat = newValue
      case .writing: writing = newValue
      case .linger: linger = newValue
      }
      if newValue < deadline {
        deadline = newValue
      } else if old == deadline {
        deadline = min(
          min(handshake, frame), min(min(message, heartbeat), min(writing, linger)))
      }
    }
  }

  /// Stops the timer.
  package mutating func clear(_ timer: ConnectionTimer) {
    self[timer] = .distantFuture
  }

  /// Clears and returns a timer that is due at `now`, with its due time. If several are due,
  /// returns them in the order of their declaration.
  package mutating func nextDue(
    at now: LinkInstant
  ) -> (timer: ConnectionTimer, due: LinkInstant)? {
    guard deadline <= now else { return nil }
    for timer in ConnectionTimer.allCases where self[timer] <= now {
      let due = self[timer]
      clear(timer)
      return (timer, due)
    }
    return nil
  }
}
