// SPDX-License-Identifier: Apache-2.0

internal import LongLinkTransport

/// Decides which readiness a TLS transport waits for below, which it reports to its handler, and
/// whether it has work at the end of the turn. It is a plain value, which knows no transport.
struct TLSReadiness: Equatable {
  /// The state of the transport on which its readiness depends.
  struct State: Equatable {
    var phase: TLSTransport.Phase
    /// Whether records wait for the transport below.
    var hasOutput = false
    /// Whether the transport below took only a part of the records.
    var isBlocked = false
    /// Whether the end of the transport below was read.
    var hasEndedBelow = false
  }

  /// The readiness that the handler waits for.
  private(set) var interest = Readiness.none
  /// The interest that is set on the transport below.
  private var interestBelow = Readiness.none
  /// Whether a failure was reported to a handler that waits for nothing.
  private var hasToldFailure = false

  /// Sets the readiness that the handler waits for; returns false if it is the same as before.
  mutating func setInterest(_ interest: Readiness) -> Bool {
    defer { self.interest = interest }
    return interest != self.interest
  }

  /// The interest to set on the transport below; nil if it is already set.
  mutating func interestBelow(_ state: State) -> Readiness? {
    let wanted: Readiness
    switch state.phase {
    case .connecting: wanted = .write
    case .handshaking: wanted = state.isBlocked ? [.read, .write] : .read
    case .open:
      let reads = interest.contains(.read) && !state.hasEndedBelow
      let writes = state.isBlocked || interest.contains(.write)
      wanted = (reads ? Readiness.read : .none).union(writes ? .write : .none)
    case .failed: wanted = state.isBlocked ? .write : .none
    case .flushing: wanted = .write
    case .discarding: wanted = .read
    case .closed: return nil
    }
    guard wanted != interestBelow else { return nil }
    interestBelow = wanted
    return wanted
  }

  /// The readiness to report to the handler. `readiness` is that of the transport below;
  /// `isReadable` is true if a read needs nothing from below.
  mutating func told(_ readiness: Readiness, isReadable: Bool, _ state: State) -> Readiness {
    guard state.phase != .failed else {
      // A handler that waits for nothing has to learn of the failure, too.
      if interest == .none, !hasToldFailure {
        hasToldFailure = true
        return .read
      }
      return interest
    }
    let ready = isReadable ? readiness.union(.read) : readiness
    return (state.isBlocked ? ready.intersection(.read) : ready).intersection(interest)
  }

  /// Whether the transport has something to write or report at the end of the turn.
  func hasWork(
    isReadable: @autoclosure () -> Bool, hasHandler: Bool, _ state: State
  ) -> Bool {
    let writes = state.hasOutput && !state.isBlocked
    return switch state.phase {
    case .handshaking: writes
    case .open: writes || interest.contains(.read) && isReadable()
    case .failed: hasHandler && (interest != .none || !hasToldFailure)
    case .connecting, .flushing, .discarding, .closed: false
    }
  }
}
