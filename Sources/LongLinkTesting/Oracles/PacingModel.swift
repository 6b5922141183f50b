internal import LongLink
internal import LongLinkConnection
internal import LongLinkCore
internal import LongLinkTransport

/// What a client's policy allows, worked out anew from what happened to its links: when the next
/// round may begin, from which window its delay may come, and how attempts of a round may follow
/// each other.
struct PacingModel {
  private let name: String
  private let policy: ReconnectPolicy
  /// How far apart attempts of one round start (RFC 8305, section 5).
  private static let stagger: Int64 = 250_000_000

  /// Rounds that failed, and links that ended unproven, since a link worked.
  private var failures = 0
  private var notBefore: LinkInstant?
  private var hint: ClosedRange<Int64>?
  private var round: UInt32?
  private var lastAttempt = LinkInstant(nanoseconds: 0)
  private var hasFailure = false
  private var worked: Set<UInt32> = []
  private var drained: Set<UInt32> = []
  private var established: [UInt32: LinkInstant] = [:]
  /// The delays that were drawn around the cap.
  private var capped: Set<Int64> = []
  private(set) var broken: [OracleFinding] = []

  init(name: String, configuration: ClientConfiguration) {
    self.name = name
    policy = configuration.reconnect
  }

  /// The longest delay that the policy gives.
  static func longestDelay(_ policy: ReconnectPolicy) -> Duration {
    max(policy.cap, policy.afterClose, policy.afterLostHeartbeat)
  }

  mutating func heard(_ event: LinkEvent, at time: LinkInstant) {
    switch event {
    case .attempt(let id, let round, _, _, let replaces):
      attempt(id, round: round, replaces: replaces, at: time)
    case .failed:
      hasFailure = true
    case .roundFailed(_, replaces: false):
      failures += 1
    case .roundFailed(_, replaces: true):
      break
    case .established(let id):
      established[id] = time
    case .worked(let id):
      worked.insert(id)
      failures = 0
    case .goaway(let id, let code, let retryAfter, let spread):
      let least = retryAfter.clampedNanoseconds
      hint = code == .draining ? least...(least + spread.clampedNanoseconds) : nil
      if let hint, hint.upperBound > 0 { drained.insert(id) }
    case .ended(let id, _, _):
      // A server that says when it wants to be asked again has not failed.
      if !worked.contains(id), !drained.contains(id) { failures += 1 }
      drained.remove(id)
      established[id] = nil
      worked.remove(id)
    case .waiting(let failures, let window, let delay, let cause):
      wait(failures, window.clampedNanoseconds, delay.clampedNanoseconds, cause, at: time)
    case .pathChanged, .resumed:
      notBefore = nil
    case .suspended:
      notBefore = nil
    }
  }
}

extension PacingModel {
  private mutating func attempt(
    _ id: UInt32, round: UInt32, replaces: Bool, at time: LinkInstant
  ) {
    if self.round == round {
      let pause = time - lastAttempt
      if pause < Self.stagger, !hasFailure {
        fail("attempt \(id) came \(pause) ns after the one before it, which had not failed", time)
      }
    } else if !replaces, let notBefore, time < notBefore {
      fail("attempt \(id) came \(notBefore - time) ns before its time", time)
    }
    self.round = round
    lastAttempt = time
    hasFailure = false
  }

  private mutating func wait(
    _ failures: Int, _ window: Int64, _ delay: Int64, _ cause: LinkWait.Cause,
    at time: LinkInstant
  ) {
    notBefore = time + delay
    if cause == .goaway {
      if let hint, !hint.contains(delay) {
        fail("the delay of \(delay) ns is not within the server's hint, \(hint) ns", time)
      }
      return
    }
    let expected =
      switch cause {
      case .closed: policy.afterClose.clampedNanoseconds
      case .heartbeatLost: policy.afterLostHeartbeat.clampedNanoseconds
      case .refused, .unproven, .goaway: bound(after: max(self.failures, 1))
      }
    if window != expected {
      fail(
        """
        the window after \(self.failures) failures (\(cause)) is \(window) ns, \
        and should be \(expected) ns
        """, time)
    }
    if delay < 0 || delay > window {
      fail("the delay of \(delay) ns is not within the window of \(window) ns", time)
    }
  }

  /// The base, doubled with each failure but the first, up to the cap.
  private func bound(after failures: Int) -> Int64 {
    var bound = policy.base.clampedNanoseconds
    let cap = policy.cap.clampedNanoseconds
    for _ in 1..<failures where bound < cap { bound *= 2 }
    return min(bound, cap)
  }

  private mutating func fail(_ detail: String, _ time: LinkInstant) {
    broken.append(OracleFinding(.attemptsPaced, at: time, "\(name): \(detail)"))
  }
}
