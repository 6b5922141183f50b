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
    /// Indirect, because most runs end without it: few come later.
    indirect case ended(OnceReply)
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
    /// The name of the store that was asked for because of this request's space; else nil.
    var storeName: [UInt8]?
    /// Which run of the record it is.
    var number = 1
    /// Whether nobody wants the reply any more, before the handler is called.
    var isGivenUp = false
    /// Whether the handler was called, and has not returned.
    var isCalled = false
    /// Whether it counts among the handlers whose requests have ended.
    var isDetached = false
    /// The end of such a handler's time; once it has returned, of the time of its answer.
    var limit: LoopTimer?
    /// The end of the time until the store is asked or told again.
    var pause: LoopTimer?
    /// Whether the server has stopped, and cancelled the handler.
    var isCutOff = false
    /// How often the store has been asked again.
    var polls = 0
    /// What the handler has completed the record with, and whether the store has said that it has.
    var completed: OnceAnswer?
    var isStored = false

    init() {}

    /// The state of a run that the store has begun already.
    init(running number: Int) {
      phase = .running
      isCalled = true
      self.number = number
    }

    var isAlone: Bool { !runnerWaits && waiters.isEmpty }

    /// Whether it runs in another process, and nobody waits for it here.
    var isUnwanted: Bool { if case .elsewhere = phase { isAlone } else { false } }
  }

  let client: Client
  let metadata: ReceivedMetadata
  let type: MessageType
  let place: OncePlace
  let begin: OnceBegin
  /// The name under which the store is asked; nil if that has to be asked for before.
  private let storeName: [UInt8]?
  /// Where a store in memory has its record.
  let index: Atomic<UInt32>
  private let route: OnceRoute
  let loop: EventLoop
  /// When its request has arrived.
  private let arrival: LinkInstant
  let state: Mutex<State>

  var table: OnceTable { client.table }
  var rule: OnceRule { route.rule }

  /// When its record expires at the latest, by the store's clock.
  var expiry: Int64 { begin.expiry(at: table.status(at: arrival).time) }

  /// Whether that has passed; on the loop.
  var isOver: Bool { table.status(at: loop.now).time >= expiry }

  /// Makes a run. A store in memory that has begun it already has its record at `index`, and says
  /// which run of the record it is.
  init(
    _ question: OnceQuestion, _ begin: OnceBegin, at place: OncePlace, of client: Client,
    in storeName: [UInt8]?, at now: LinkInstant, index: UInt32 = .max, begun number: Int? = nil
  ) {
    self.client = client
    metadata = question.metadata
    type = question.type
    self.place = place
    self.begin = begin
    self.storeName = storeName
    self.index = Atomic(index)
    route = question.route
    loop = question.loop
    arrival = now
    state = Mutex(number.map { State(running: $0) } ?? State())
  }

  var token: OnceToken {
    OnceToken(
      scope: client.scope, type: type, key: metadata.idempotencyKey, number: begin.number)
  }

  /// What the store is asked for, under the name that the request's space stands for.
  var attempt: OnceAttempt {
    OnceAttempt(
      token: token, fingerprint: begin.fingerprint, keyTime: begin.keyTime,
      retention: begin.retention,
      storeName: storeName ?? state.withLock { $0.storeName } ?? [], runsAgain: begin.runsAgain)
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
    if effect.detaches { detaches() }
    if effect.stops { end(OnceTable.noStore, ifUnwanted: true) }
    effect.cancels?.cancelHandler()
  }

  // MARK: Beginning

  /// The store has said that it runs, before its exchange has joined.
  func runs(_ number: Int) {
    table.outcomes.count(.run)
    state.withLock { $0.runs(number) }
  }

  /// It does not run. Those who have joined get the same reply.
  func refused(_ reply: OnceReply) -> OnceReply {
    end(reply)
    return reply
  }

  func ask(_ placement: HandlerPlacement) {
    state.withLock { $0.placement = placement }
    if storeName == nil { table.askName(for: self, arrivedAt: arrival) } else { ask() }
  }

  /// The store has said its name, or has not when it was asked; on the loop.
  func hearsName(_ answer: NameAnswer) {
    switch answer {
    case .failed: end(OnceTable.noStore)
    case .known:
      let named = client.named
      guard named.space == metadata.keySpace else {
        return end(table.wrongTerms(of: client, at: loop.now))
      }
      state.withLock { $0.storeName = named.name }
      // If there is another run of the key, the store decides between them.
      _ = table.add(self)
      ask()
    }
  }

  /// Asks the store whether it runs; on the loop.
  func ask() {
    let table = table
    if let memory = table.memory { return found(beginNow(in: memory)) }
    let (attempt, start) = (attempt, loop.now)
    guard table.mayAsk else { return end(OnceTable.noStore) }
    table.call(on: loop) {
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
        table.failed("begin", nil, at: self.loop.now)
        self.end(OnceTable.noStore)
      case .returnedLate:
        self.conclude(.abandoned)
      }
    }
  }

  /// Asks a store in memory.
  func beginNow(in memory: MemoryOnceStore) -> OnceFinding {
    let (finding, index) = memory.beginNow(begin, at: place)
    if case .run = finding { self.index.store(index, ordering: .relaxed) }
    return finding
  }

  private enum Found {
    case launch(RunningHandler, HandlerPlacement)
    case abandon
    case ask
    case stop
    case giveUp
  }

  /// The store has answered a begin.
  private func found(_ finding: OnceFinding) {
    if let reply = table.reply(to: finding, of: client, at: loop.now) { return end(reply) }
    let isOver = finding == .running && (self.isOver || table.hasForgotten(place))
    let next = state.withLock { state -> Found in
      // Nobody waited any more.
      if case .ended = state.phase { return finding == .running ? .stop : .abandon }
      guard case .run(let number) = finding else {
        state.phase = .elsewhere
        return state.isAlone ? .stop : isOver ? .giveUp : .ask
      }
      guard let runner = state.runner, !state.isGivenUp,
        !table.isStopped.load(ordering: .acquiring)
      else { return .abandon }
      state.runs(number)
      if !state.runnerWaits { state.isDetached = true }
      return .launch(runner, state.placement)
    }
    switch next {
    case .launch(let runner, let placement):
      table.outcomes.count(.run)
      if state.withLock({ $0.isDetached }) { detaches() }
      runner.launch(placement)
    case .abandon: dropped()
    case .ask: askLater()
    case .stop: end(OnceTable.noStore)
    case .giveUp:
      end(OnceTable.gone("the request has begun, and its record does not say how it has ended"))
    }
  }

  private func askLater() {
    let delay = state.withLock { state in
      defer { state.polls += 1 }
      return min(2_000, Int64(50) << min(state.polls, 6))
    }
    pause(delay) { run in
      // Those who waited may have left meanwhile.
      if case .elsewhere = run.state.withLock({ $0.phase }) { run.ask() }
    }
  }

  /// Does something after a pause in milliseconds, unless the server stops first; on the loop.
  func pause(_ delay: Int64, then body: @escaping (Run) -> Void) {
    let pause = after(delay, body)
    state.withLock { $0.pause = pause }
  }

  /// Does something after a delay in milliseconds; on the loop.
  func after(_ delay: Int64, _ body: @escaping (Run) -> Void) -> LoopTimer {
    loop.schedule(at: loop.now + delay * 1_000_000, Pause(self, body), token: 0)
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
  mutating func runs(_ number: Int) {
    phase = .running
    isCalled = true
    self.number = number
  }

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
