// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkOnceStore
@_spi(Loop) internal import LongLinkTransport
internal import Synchronization

/// A run of a request under a key: from its begin until the store has its end.
final class Run: OnceRun {
  enum Phase {
    /// The store is to say whether it runs.
    case beginning
    /// It runs in another process: the store is asked again.
    case elsewhere
    case running
    /// The handler has returned, and the store is to have it.
    case ending
    case ended(OnceReply)
  }

  struct State {
    var phase = Phase.beginning
    /// The exchange with the handler, also once it has ended.
    var runner: RunningHandler?
    /// Whether that exchange waits for the reply.
    var runnerWaits = false
    /// The other exchanges that wait, in the order in which they came: there may be very many.
    var waiters: [ObjectIdentifier: (order: Int, exchange: RunningHandler)] = [:]
    var joined = 0
    var placement = HandlerPlacement.connectionLoop
    /// Which run of the record it is.
    var number = 1
    /// Whether nobody wants the reply any more, before the handler is called.
    var isGivenUp = false
    /// Whether it counts among the handlers whose requests have ended.
    var isDetached = false
    /// Whether the server has stopped, and cancelled the handler.
    var isCutOff = false
    /// How often the store has been asked again.
    var polls = 0
    /// What the handler has completed the record with, and whether the store has said that it has.
    var completed: OnceAnswer?
    var isStored = false

    var isAlone: Bool { !runnerWaits && waiters.isEmpty }

    /// Whether it runs in another process, and nobody waits for it here.
    var isUnwanted: Bool { if case .elsewhere = phase { isAlone } else { false } }
  }

  let client: Client
  let place: OnceTable.Place
  let attempt: OnceAttempt
  let rule: OnceRule
  let loop: EventLoop
  /// When its record expires at the latest, by the store's clock.
  let expiry: Int64
  let state = Mutex(State())

  var table: OnceTable { client.table }

  init(
    _ question: OnceQuestion, _ fingerprint: OnceFingerprint, of client: Client,
    in storeName: [UInt8], at now: LinkInstant
  ) {
    self.client = client
    let table = client.table
    let time = table.status(at: now).time
    place = OnceTable.Place(
      scope: client.scope.bytes, type: question.type.rawValue, key: question.key)
    attempt = OnceAttempt(
      token: OnceToken(
        scope: client.scope, type: question.type, key: question.key,
        number: Int64(bitPattern: question.loop.driver.nextRandom())),
      fingerprint: fingerprint, keyTime: Int64(question.time), retention: table.retention,
      storeName: storeName, runsAgain: question.rule.runsAgain)
    rule = question.rule
    loop = question.loop
    expiry = attempt.expiry(at: time)
  }

  /// The reply for those who come later; nil if there is none yet.
  var reply: OnceReply? {
    state.withLock { if case .ended(let reply) = $0.phase { reply } else { nil } }
  }

  // MARK: Exchanges

  func join(_ exchange: RunningHandler, runs: Bool) -> OnceReply? {
    state.withLock { state in
      if case .ended(let reply) = state.phase { return reply }
      if runs {
        state.runner = exchange
        state.runnerWaits = true
      } else {
        state.waiters[ObjectIdentifier(exchange)] = (state.joined, exchange)
        state.joined += 1
      }
      return nil
    }
  }

  func left(_ exchange: RunningHandler, _ reason: OnceLeaving) {
    let effect = state.withLock { $0.leave(exchange, reason) }
    if effect.detaches { table.detached.add(1, ordering: .relaxed) }
    if effect.stops { end(OnceTable.noStore, ifUnwanted: true) }
    effect.cancels?.cancelHandler()
  }

  // MARK: Beginning

  /// The store has said that it runs, before its exchange has joined.
  func runs(_ number: Int) {
    state.withLock { state in
      state.phase = .running
      state.number = number
    }
  }

  /// It does not run. Those who have joined get the same reply.
  func refused(_ reply: OnceReply) -> OnceReply {
    end(reply)
    return reply
  }

  func ask(_ placement: HandlerPlacement) {
    state.withLock { $0.placement = placement }
    ask()
  }

  /// Asks the store whether it runs; on the loop.
  func ask() {
    let (table, attempt, start) = (table, attempt, loop.now)
    if let memory = table.memory { return found(memory.beginNow(attempt)) }
    guard table.lateCalls.load(ordering: .relaxed) < OnceTable.mostLateCalls else {
      return end(OnceTable.noStore)
    }
    StoreCall.begin(on: loop, within: table.storeTimeout) {
      let finding = try await table.store.begin(attempt)
      guard finding == .otherName || finding == .outOfTime else { return (finding, nil) }
      return (finding, try? await table.store.status())
    } then: { (outcome: StoreCall<(OnceFinding, OnceStoreStatus?)>.Outcome) in
      switch outcome {
      case .returned(.success(let (finding, status))):
        if let status { table.learn(status, askedAt: start, at: self.loop.now) }
        self.found(finding)
      case .returned(.failure(let error)):
        table.failed("begin", error, at: self.loop.now)
        self.end(OnceTable.noStore)
        // It may have begun.
        self.conclude(.abandoned)
      case .late:
        table.lateCalls.add(1, ordering: .relaxed)
        table.failed("begin", nil, at: self.loop.now)
        self.end(OnceTable.noStore)
      case .returnedLate:
        table.lateCalls.subtract(1, ordering: .relaxed)
        self.conclude(.abandoned)
      }
    }
  }

  private enum Found {
    case launch(RunningHandler, HandlerPlacement)
    case abandon
    case ask
    case stop
  }

  /// The store has answered a begin.
  private func found(_ finding: OnceFinding) {
    if let reply = table.reply(to: finding, of: client, at: loop.now) { return end(reply) }
    let next = state.withLock { state -> Found in
      // Nobody waited any more.
      if case .ended = state.phase { return finding == .running ? .stop : .abandon }
      guard case .run(let number) = finding else {
        state.phase = .elsewhere
        return state.isAlone ? .stop : .ask
      }
      guard let runner = state.runner, !state.isGivenUp,
        !table.isStopped.load(ordering: .acquiring)
      else { return .abandon }
      state.phase = .running
      state.number = number
      if !state.runnerWaits { state.isDetached = true }
      return .launch(runner, state.placement)
    }
    switch next {
    case .launch(let runner, let placement):
      if state.withLock({ $0.isDetached }) { table.detached.add(1, ordering: .relaxed) }
      runner.launch(placement)
    case .abandon: dropped()
    case .ask: askLater()
    case .stop: end(OnceTable.noStore)
    }
  }

  private func askLater() {
    let delay = state.withLock { state in
      defer { state.polls += 1 }
      return min(2_000, Int64(50) << min(state.polls, 6))
    }
    after(delay) { run in
      // Those who waited may have left meanwhile.
      if case .elsewhere = run.state.withLock({ $0.phase }) { run.ask() }
    }
  }

  /// Does something after a delay in milliseconds; on the loop.
  func after(_ delay: Int64, _ body: @escaping (Run) -> Void) {
    _ = loop.schedule(at: loop.now + delay * 1_000_000, Pause(self, body), token: 0)
  }

  private final class Pause: TimerHandler {
    private let run: Run
    private let body: (Run) -> Void

    init(_ run: Run, _ body: @escaping (Run) -> Void) {
      self.run = run
      self.body = body
    }

    func timerFired(token: UInt64) { body(run) }
  }
}

extension Run.State {
  /// What the end of an exchange makes of the run.
  struct Leaving {
    /// The handler that is to be cancelled.
    var cancels: RunningHandler?
    /// Whether the handler goes on without the exchange for which it was called.
    var detaches = false
    /// Whether nobody waits any more for what another process does.
    var stops = false
  }

  mutating func leave(_ exchange: RunningHandler, _ reason: OnceLeaving) -> Leaving {
    let isRunner = exchange === runner
    var leaving = Leaving()
    if isRunner {
      runnerWaits = false
    } else {
      waiters[ObjectIdentifier(exchange)] = nil
    }
    // The handler has the deadline of the request for which it was called.
    let isOver =
      reason == .cancelled && isAlone || reason == .deadlinePassed && isRunner
    switch phase {
    case .beginning:
      // Others may wait and leave before the exchange with the handler has joined.
      if runner != nil, isOver || reason == .deadlinePassed && isAlone { isGivenUp = true }
    case .elsewhere:
      if reason == .deadlinePassed, isRunner { isGivenUp = true }
      leaving.stops = isAlone
    case .running:
      if isOver { leaving.cancels = runner }
      if isRunner, !isDetached {
        isDetached = true
        leaving.detaches = true
      }
    case .ending, .ended: break
    }
    return leaving
  }
}
