// SPDX-License-Identifier: Apache-2.0

extension LinkMachine {
  /// The state of the client's connection.
  package enum State: Equatable, Sendable {
    case idle
    case connecting(Target)
    case connected(AttemptID)
    /// There is a link, and its replacement is being connected.
    case migrating(AttemptID, to: Target)
    case waiting(LinkInstant)
    case suspended
    case stopped
    case closed
  }

  package var state: State {
    switch mode {
    case .idle: return .idle
    case .suspended: return .suspended
    case .stopped: return .stopped
    case .closed: return .closed
    case .active: break
    }
    switch (roundState, current) {
    case (.none, let link?), (.waiting, let link?): return .connected(link.id)
    case (.resolving, let link?), (.connecting, let link?): return .migrating(link.id, to: target)
    case (.resolving, nil), (.connecting, nil): return .connecting(target)
    case (.waiting(let until), nil): return .waiting(until)
    case (.none, nil): return .idle
    }
  }

  /// The number of failed rounds and unproven links in this outage.
  package var failures: Int { outage.failures }

  /// Whether a link takes requests now, so that a round would only replace it.
  package var isReplacing: Bool { current != nil }

  /// The index of a link's server in the list; nil for an alternative. The link has to be the
  /// current one, or one of the current round.
  package func server(of attempt: AttemptID) -> Int? {
    let target = isCurrent(attempt) ? current?.target : target
    return if case .listed(let index) = target { index } else { nil }
  }

  /// Whether this is an attempt of the current round, which was not dropped.
  package func isAttempt(_ attempt: AttemptID) -> Bool { attempts.contains { $0.id == attempt } }

  /// Whether new requests go to this link.
  package func isCurrent(_ attempt: AttemptID) -> Bool { current?.id == attempt }

  /// The latest time at which the attempt that is being prepared has to be ready; nil if none is
  /// being prepared.
  package var preparedUntil: LinkInstant? { attempts.first { $0.isPreparing }?.limit }

  /// Whether the machine needs to know about responses: only about the first one of a link, unless
  /// an error ratio is watched.
  ///
  /// It is read for each response. It is mutating only so that a machine in a class is accessed in
  /// place instead of being copied.
  package var wantsOutcomes: Bool {
    mutating get { watchesErrors || current?.hasWorked == false || !attempts.isEmpty }
  }

  /// When `elapsed(to:)` should be called.
  package var deadline: LinkInstant {
    var earliest = retired.reduce(LinkInstant.distantFuture) { min($0, $1.until) }
    if let current, !current.hasWorked, !current.hasLasted {
      earliest = min(earliest, current.provenAt)
    }
    earliest = min(earliest, preferredAt, renewAt)
    return switch roundState {
    case .none: earliest
    case .waiting(let until), .resolving(let until): min(earliest, until)
    case .connecting: attempts.reduce(min(earliest, nextStart)) { min($0, $1.limit) }
    }
  }
}
