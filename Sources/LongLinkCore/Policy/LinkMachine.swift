/// Decides when a client resolves, connects, gives up, waits and connects again.
///
/// Facts go in with the instant at which they became known, effects come out. An attempt is one
/// connect with its handshake; attempts to the addresses of one server start a quarter of a second
/// apart and race, and the first whose handshake is complete wins (RFC 8305, section 5).
package struct LinkMachine: Equatable {
  /// Names one connect; never used twice by one client.
  package typealias AttemptID = UInt32

  package enum Phase: Equatable, Sendable {
    /// Nothing is wanted yet. Can become: resolving, closed.
    case idle
    /// The server's name is being looked up. Can become: connecting, waiting, closed.
    case resolving
    /// Attempts are under way. Can become: up, waiting, closed.
    case connecting
    /// A session is open. Can become: resolving, waiting, closed.
    case up(AttemptID)
    /// The next round begins at this instant. Can become: resolving, closed.
    case waiting(LinkInstant)
    /// Nothing happens any more.
    case closed
  }

  package enum Effect: Equatable, Sendable {
    case resolve(server: Int, round: UInt32)
    case connect(AttemptID, address: Int)
    /// Close an attempt that has lost the race or took too long.
    case abandon(AttemptID)
    /// All attempts of a round have failed; the next round begins later.
    case roundFailed(server: Int)
    /// The next round begins later, for this reason.
    case wait(LinkWait)
  }

  package struct Settings: Equatable, Sendable {
    package var servers: Int
    package var policy: ReconnectPolicy
    /// Between the starts of two attempts of a round, in nanoseconds (RFC 8305 recommends 250 ms).
    package var stagger: Int64 = 250_000_000
    /// How long one attempt may take, the handshake included, in nanoseconds.
    package var connectTimeout: Int64

    package init(servers: Int, policy: ReconnectPolicy, connectTimeout: Int64) {
      self.servers = servers
      self.policy = policy
      self.connectTimeout = connectTimeout
    }
  }

  private struct Attempt: Equatable, Sendable {
    let id: AttemptID
    let limit: LinkInstant
  }

  package let settings: Settings
  package private(set) var phase = Phase.idle
  /// The server that is being used or tried.
  package private(set) var server = 0
  /// Failed rounds since a session last worked.
  package private(set) var failures = 0
  package private(set) var round: UInt32 = 0
  private var lastAttempt: AttemptID = 0
  private var attempts: [Attempt] = []
  private var addressCount = 0
  private var nextAddress = 0
  private var nextStart = LinkInstant.distantFuture
  /// Whether the present link has shown that the server is well.
  package private(set) var hasWorked = false
  private var effects = Queue<Effect>()

  package init(settings: Settings) {
    self.settings = settings
  }

  package mutating func nextEffect() -> Effect? { effects.popFirst() }

  /// When `elapsed(to:)` wants to be called.
  package var deadline: LinkInstant {
    switch phase {
    case .waiting(let until): until
    case .connecting: attempts.reduce(nextStart) { min($0, $1.limit) }
    case .idle, .resolving, .up, .closed: .distantFuture
    }
  }

  /// A link is wanted.
  package mutating func start() {
    if phase == .idle { beginRound() }
  }

  private mutating func beginRound() {
    round += 1
    attempts = []
    phase = .resolving
    effects.append(.resolve(server: server, round: round))
  }

  /// The look-up of a round has ended with this many addresses; none is a failure.
  package mutating func resolved(
    round: UInt32, addresses: Int, at now: LinkInstant, bits: () -> UInt64
  ) {
    guard phase == .resolving, round == self.round else { return }
    guard addresses > 0 else {
      failRound(at: now, bits: bits)
      return
    }
    addressCount = addresses
    nextAddress = 0
    phase = .connecting
    startNext(at: now)
  }

  private mutating func startNext(at now: LinkInstant) {
    lastAttempt += 1
    attempts.append(Attempt(id: lastAttempt, limit: now + settings.connectTimeout))
    effects.append(.connect(lastAttempt, address: nextAddress))
    nextAddress += 1
    nextStart = nextAddress < addressCount ? now + settings.stagger : .distantFuture
  }

  /// An attempt has come to nothing; the next address does not have to wait for its turn.
  package mutating func failed(_ attempt: AttemptID, at now: LinkInstant, bits: () -> UInt64) {
    guard phase == .connecting, let index = attempts.firstIndex(where: { $0.id == attempt }) else {
      return
    }
    attempts.remove(at: index)
    if nextAddress < addressCount {
      startNext(at: now)
    } else if attempts.isEmpty {
      failRound(at: now, bits: bits)
    }
  }

  /// An attempt's handshake is complete: it is the link, unless another one was first.
  package mutating func established(_ attempt: AttemptID) {
    guard phase != .up(attempt) else { return }
    guard phase == .connecting, attempts.contains(where: { $0.id == attempt }) else {
      effects.append(.abandon(attempt))
      return
    }
    for other in attempts where other.id != attempt { effects.append(.abandon(other.id)) }
    attempts = []
    hasWorked = false
    phase = .up(attempt)
  }

  /// The session has answered a request, or lived through a heartbeat interval: only now is the
  /// server known to be well, and the next failure starts from the shortest delay.
  package mutating func worked() {
    // A link that is on its way out may still be answered while the next one is made.
    guard case .up = phase else { return }
    hasWorked = true
    failures = 0
  }

  /// The link has ended. A delay above zero that the server asked for overrides the policy's.
  package mutating func ended(
    _ attempt: AttemptID, _ reason: CloseReason, hint: Int64?, at now: LinkInstant,
    bits: () -> UInt64
  ) {
    guard phase == .up(attempt) else { return }
    if let hint, hint > 0 {
      wait(hint, window: hint, .goaway, at: now)
      return
    }
    guard hasWorked else {
      // It greeted and did nothing else: the delays go on growing, and another may do better.
      fail(.unproven, at: now, bits: bits)
      return
    }
    let bound: Int64 =
      if reason == .heartbeatLost {
        settings.policy.afterLostHeartbeat.clampedNanoseconds
      } else {
        settings.policy.afterClose.clampedNanoseconds
      }
    let delay = ReconnectPolicy.delay(within: bound, bits: bits())
    wait(delay, window: bound, reason == .heartbeatLost ? .heartbeatLost : .closed, at: now)
  }

  private mutating func wait(
    _ delay: Int64, window: Int64, _ cause: LinkWait.Cause, at now: LinkInstant
  ) {
    phase = .waiting(now + delay)
    effects.append(
      .wait(LinkWait(failures: failures, window: window, delay: delay, cause: cause)))
  }

  private mutating func failRound(at now: LinkInstant, bits: () -> UInt64) {
    effects.append(.roundFailed(server: server))
    fail(.refused, at: now, bits: bits)
  }

  private mutating func fail(
    _ cause: LinkWait.Cause, at now: LinkInstant, bits: () -> UInt64
  ) {
    failures += 1
    server = (server + 1) % settings.servers
    let bound = settings.policy.bound(afterFailures: failures)
    wait(ReconnectPolicy.delay(within: bound, bits: bits()), window: bound, cause, at: now)
  }

  /// Nothing is wanted any more.
  package mutating func close() {
    effects.removeAll { effect in
      switch effect {
      case .resolve, .connect: true
      case .abandon, .roundFailed, .wait: false
      }
    }
    for attempt in attempts { effects.append(.abandon(attempt.id)) }
    attempts = []
    phase = .closed
  }

  /// Tells of the passing of time.
  package mutating func elapsed(to now: LinkInstant, bits: () -> UInt64) {
    switch phase {
    case .waiting(let until) where until <= now:
      beginRound()
    case .connecting:
      if nextStart <= now { startNext(at: now) }
      for attempt in attempts where attempt.limit <= now {
        effects.append(.abandon(attempt.id))
        failed(attempt.id, at: now, bits: bits)
      }
    case .idle, .resolving, .up, .waiting, .closed:
      break
    }
  }
}
