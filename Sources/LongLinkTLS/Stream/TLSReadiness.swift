// SPDX-License-Identifier: Apache-2.0

internal import LongLinkTransport

/// Decides what a TLS transport waits for below, what it tells its handler, and whether it has work
/// at the end of the turn. It is a plain value, which knows no transport.
struct TLSReadiness: Equatable {
  /// The state of the transport on which its readiness depends.
  struct State: Equatable {
    var phase: TLSTransport.Phase
    /// Whether records wait for the transport below.
    var hasOutput = false
    /// Whether the transport below did not take all of them.
    var isBlocked = false
    /// The end of the transport below was read.
    var hasEndedBelow = false
  }

  /// What the handler waits for.
  private(set) var interest = Readiness.none
  /// The interest that is set on the transport below.
  private var interestBelow = Readiness.none
  /// Whether the handler was told of a failure that it does not wait for.
  private var hasToldFailure = false

  /// Notes what the handler waits for; false if nothing changes.
  mutating func setInterest(_ interest: Readiness) -> Bool {
    defer { self.interest = interest }
    return interest != self.interest
  }

  /// The interest to set on the transport below; nil if it is set.
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

  /// What the handler is to be told, of what it waits for: the transport below is ready, or
  /// something `isReadable` without it.
  mutating func told(_ readiness: Readiness, isReadable: Bool, _ state: State) -> Readiness {
    guard state.phase != .failed else {
      // One that waits for nothing has to learn of it, too.
      if interest == .none, !hasToldFailure {
        hasToldFailure = true
        return .read
      }
      return interest
    }
    let ready = isReadable ? readiness.union(.read) : readiness
    return (state.isBlocked ? ready.intersection(.read) : ready).intersection(interest)
  }

  /// Whether something is to be done at the end of the turn.
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
