/// The times at which something happens in a session by itself.
package enum SessionTimer: Int, CaseIterable, Sendable {
  /// Server: the first frame must have come. Client: the welcome must have come.
  case handshake
  /// The frame that has begun must be complete.
  case frame
  /// The peer is asked for a sign of life, or given up.
  case heartbeat
  /// What waits to be written must have made progress.
  case writing
  /// A closing session stops waiting for the peer's end.
  case linger
}

/// One instant for each timer; the earliest is when the session wants to be called.
package struct SessionTimers: Equatable, Sendable {
  private var instants: [LinkInstant]
  /// The earliest of them.
  package private(set) var deadline: LinkInstant = .distantFuture

  package init() {
    instants = Array(repeating: .distantFuture, count: SessionTimer.allCases.count)
  }

  /// When the timer is due; `.distantFuture` when it is not set.
  package subscript(timer: SessionTimer) -> LinkInstant {
    get { instants[timer.rawValue] }
    set {
      let old = instants[timer.rawValue]
      guard old != newValue else { return }
      instants[timer.rawValue] = newValue
      if newValue < deadline {
        deadline = newValue
      } else if old == deadline {
        deadline = instants.min()!
      }
    }
  }

  /// Stops the timer.
  package mutating func clear(_ timer: SessionTimer) {
    self[timer] = .distantFuture
  }

  /// Takes a timer that is due at `now`, with the time that it was set for; in the order of their
  /// declaration.
  package mutating func nextDue(
    at now: LinkInstant
  ) -> (timer: SessionTimer, due: LinkInstant)? {
    guard deadline <= now else { return nil }
    for timer in SessionTimer.allCases where self[timer] <= now {
      let due = self[timer]
      clear(timer)
      return (timer, due)
    }
    return nil
  }
}
