// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkOnceStore
internal import LongLinkServer
@_spi(Loop) internal import LongLinkTransport
internal import Synchronization

/// What a server knows of requests that run once, on all its loops: those that run here, and the
/// store's name and clock.
final class OnceTable: Sendable {
  /// A name of the store, and a client's space under that name.
  struct NamedSpace {
    let name: [UInt8]
    let space: KeySpace
  }

  struct State {
    var runs: [OncePlace: Run] = [:]
    /// The runs whose end the store is told again, because it has failed; not all of them are in
    /// `runs`.
    var retrying: [ObjectIdentifier: Run] = [:]
    /// Those of them whose expiry has passed by the time that is counted here.
    var forgotten: [OncePlace: Run] = [:]
    var status: OnceStoreStatus
    /// When the store said so, by the loops' clock.
    var asked: LinkInstant
    /// When it was asked for the name that is known.
    var nameAsked: LinkInstant
    /// The question for the store's name.
    var question = NameQuestion<Run>()
    /// Opened when there are no runs any more.
    var idle: Gate<Void>?
    /// Whether the server does not wait for the runs when it ends.
    var isHurried = false

    /// Returns the gate to open if nothing runs any more.
    mutating func forget(_ run: Run) -> Gate<Void>? {
      guard runs[run.place] === run else { return nil }
      runs[run.place] = nil
      return runs.isEmpty ? idle : nil
    }
  }

  let store: any OnceStore
  /// The store, if it can be called at once.
  let memory: MemoryOnceStore?
  let retention: Int64
  let maxKeptResponse: Int
  /// The most time for one call of the store, in nanoseconds.
  let storeTimeout: Int64
  /// The most time for a handler whose request has ended, in nanoseconds.
  let detachedTimeout: Int64
  let hasher = OnceHasher()
  let log: PeerLog
  let state: Mutex<State>
  /// The number of the last begin. It counts from a random number, so that no other server's begin
  /// has the same; to ask the system for each would cost more than the rest.
  private let lastBegin: Atomic<Int64>
  /// Counts the names that the store has had.
  let nameNumber = Atomic<Int>(0)
  /// The handlers whose requests have ended.
  let detached: DetachedHandlers
  let outcomes = OnceOutcomes()
  /// The calls of the store that have not returned.
  let calls = Atomic<Int>(0)
  /// The calls of the store that are late, and those that have failed and are repeated.
  let lateCalls = Atomic<Int>(0)
  /// Whether the server has stopped, so that no handler may begin.
  let isStopped = Atomic<Bool>(false)

  init(
    _ configuration: OnceConfiguration, _ status: OnceStoreStatus, at now: LinkInstant,
    counting from: UInt64, log: PeerLog
  ) {
    lastBegin = Atomic(Int64(bitPattern: from))
    store = configuration.store
    memory = configuration.store as? MemoryOnceStore
    retention = configuration.retentionMilliseconds
    maxKeptResponse = configuration.maxKeptResponse
    storeTimeout = configuration.storeTimeout.clampedNanoseconds
    detachedTimeout = configuration.detachedHandlerTimeout.clampedNanoseconds
    detached = DetachedHandlers(most: configuration.maxDetachedHandlers)
    self.log = log
    state = Mutex(State(status: status, asked: now, nameAsked: now))
  }

  /// A number that no other begin has.
  var nextBegin: Int64 { lastBegin.wrappingAdd(1, ordering: .relaxed).newValue }

  // MARK: Name and clock

  /// The store's name, and its time, counted on from what it said last.
  func status(at now: LinkInstant) -> OnceStoreStatus {
    state.withLock { state in
      var status = state.status
      status.time += max(0, now - state.asked) / 1_000_000
      return status
    }
  }

  /// Notes what the store says of itself, when it was asked at `start`.
  ///
  /// It may have said so at any instant since, so the time that was counted on holds if it can be
  /// right. It cannot if the store's clock stands still, or the loops' has jumped: then clients
  /// would be told a time that the store refuses. The name is that of the call that began last.
  func learn(_ status: OnceStoreStatus, askedAt start: LinkInstant, at now: LinkInstant) {
    let isNew = state.withLock { state in
      let isNew = state.status.name != status.name
      let counted = state.status.time + max(0, now - state.asked) / 1_000_000
      let latest = status.time + max(0, now - start) / 1_000_000
      if start < state.nameAsked, isNew { return false }
      (state.status.name, state.nameAsked) = (status.name, max(start, state.nameAsked))
      state.status.time = isNew ? status.time : min(max(counted, status.time), latest)
      state.asked = now
      return isNew
    }
    if isNew { nameNumber.add(1, ordering: .releasing) }
  }

  /// The space of a scope, a hash of the store's name, the retention and the scope; and that name.
  func space(of scope: OnceScope) -> NamedSpace {
    let name = state.withLock { $0.status.name }
    var bytes = [UInt8(truncatingIfNeeded: name.count)] + name
    for shift in stride(from: 56, through: 0, by: -8) {
      bytes.append(UInt8(truncatingIfNeeded: retention >> Int64(shift)))
    }
    let hash = hasher.hash(bytes + scope.bytes).bytes
    return NamedSpace(name: name, space: KeySpace(hash.prefix(KeySpace.size)) ?? .none)
  }

  // MARK: Runs

  /// Adds a run, unless there is one of its key, which is returned.
  func add(_ run: Run) -> Run? {
    state.withLock { state in
      if let other = state.runs[run.place] { return other }
      state.runs[run.place] = run
      return nil
    }
  }

  func run(at place: OncePlace) -> Run? { state.withLock { $0.runs[place] } }

  /// Notes that the store is told again how a run has ended. Returns false if the server has
  /// stopped: then nobody tells it any more.
  func retries(_ run: Run) -> Bool {
    state.withLock { state in
      guard !isStopped.load(ordering: .acquiring) else { return false }
      state.retrying[ObjectIdentifier(run)] = run
      return true
    }
  }

  /// Removes a run whose end the store has, or whose end it gets no more.
  func remove(_ run: Run) {
    let idle = state.withLock { state in
      state.retrying[ObjectIdentifier(run)] = nil
      if state.forgotten[run.place] === run { state.forgotten[run.place] = nil }
      return state.forget(run)
    }
    idle?.open(())
  }

  /// Lets the store answer for a run, although it is still to be told how that has ended.
  func forget(_ run: Run) {
    let idle = state.withLock { state in
      state.forgotten[run.place] = run
      return state.forget(run)
    }
    idle?.open(())
  }

  /// Whether the store is still to be told how a run at a place has ended, whose time is over.
  func hasForgotten(_ place: OncePlace) -> Bool {
    state.withLock { $0.forgotten[place] != nil }
  }

  var runCount: Int { state.withLock { $0.runs.count } }

  // MARK: Replies

  /// The reply to a request that names another space, or is out of its time.
  func wrongTerms(of client: Client, at now: LinkInstant) -> OnceReply {
    .refusal(
      .preconditionFailed, "the space or the time of the key does not hold here", .terms,
      terms: client.terms(at: now))
  }

  /// The reply to what was found; nil if the request runs or is running.
  func reply(to finding: OnceFinding, of client: Client, at now: LinkInstant) -> OnceReply? {
    switch finding {
    case .run, .running: nil
    case .answered(let answer): OnceReply(answer.code, answer.body, .replayed, isReplayed: true)
    case .notKept: Self.gone("the request has run, and its response was not kept")
    case .unknown: Self.gone("the request has begun, and nobody knows whether it has ended")
    case .otherFingerprint: Self.conflict
    case .otherName, .outOfTime: wrongTerms(of: client, at: now)
    case .full:
      .refusal(
        .overloaded, "there is no room for another record", .full, retryAfter: Self.pauseForRoom)
    }
  }

  static let conflict = OnceReply.refusal(
    .conflict, "the key belongs to another payload", .conflict)
  static let overloaded = OnceReply.refusal(
    .overloaded, "the server is overloaded, and has no answer for the key yet", .overloaded,
    retryAfter: pauseForRoom)
  static let tooManyDetached = OnceReply.refusal(
    .overloaded, "too many handlers of this client's earlier requests still run", .detached,
    retryAfter: pauseForRoom)
  static let noStore = OnceReply.refusal(
    .draining, "the store of records does not answer, or has too much to do", .store,
    retryAfter: pauseForRoom)
  private static let pauseForRoom = Duration.seconds(1)

  static func gone(_ detail: String) -> OnceReply {
    OnceReply(.gone, Array(detail.utf8), .gone, isReplayed: true)
  }
}

// MARK: - What a server does with it

extension OnceTable: OnceKeeper {
  func welcome(
    principal: String?, clientID: [UInt8]?, at now: LinkInstant
  ) -> (client: any OnceClient, terms: OnceTerms)? {
    let scope: OnceScope
    if let principal {
      scope =
        principal.utf8.count <= OnceScope.mostNameBytes
        ? OnceScope(principal: principal)
        : OnceScope(principalHash: hasher.hash(Array(principal.utf8)).bytes)
    } else if let clientID {
      scope = OnceScope(clientHash: hasher.hash(clientID).bytes)
    } else {
      return nil
    }
    let client = Client(scope, of: self)
    return (client, client.terms(at: now))
  }

  /// Waits until nothing runs any more, for a time in nanoseconds at most. Then cancels what still
  /// runs, and returns its number.
  func drain(within time: Int64, on loop: EventLoop) async -> Int {
    let gate = Gate<Void>()
    let isIdle = state.withLock { state in
      state.idle = gate
      if state.isHurried { gate.open(()) }
      return state.runs.isEmpty
    }
    guard !isIdle else {
      await stop()
      return 0
    }
    let timer = await loop.run {
      LoopBound(loop.schedule(at: loop.now + time, DrainTimer(gate), token: 0), on: loop)
    }
    await gate.value
    await loop.run { loop.cancel(timer.value) }
    return await stop().reduce(into: 0) { count, run in count += run.cutOff() ? 1 : 0 }
  }

  func hurryDrain() {
    let idle = state.withLock { state in
      state.isHurried = true
      return state.idle
    }
    idle?.open(())
  }

  /// Lets no handler begin any more, and nobody tell the store again. Returns what still runs.
  @discardableResult
  private func stop() async -> [Run] {
    let (runs, retrying, question) = state.withLock { state in
      isStopped.store(true, ordering: .releasing)
      defer { state.retrying = [:] }
      return (Array(state.runs.values), Array(state.retrying.values), state.question.stop())
    }
    if let (timer, loop) = question.timer { await loop.run { loop.cancel(timer) } }
    for run in question.waiting { run.loop.runOnLoop { run.hearsName(.failed) } }
    for run in Self.sorted(runs + retrying) { await run.loop.run { run.stopTimers() } }
    return Self.sorted(runs)
  }

  /// In an order that is the same when a simulation is repeated.
  static func sorted(_ runs: [Run]) -> [Run] {
    runs.sorted { $0.begin.number < $1.begin.number }
  }

  private final class DrainTimer: TimerHandler {
    let gate: Gate<Void>

    init(_ gate: Gate<Void>) {
      self.gate = gate
    }

    func timerFired(token: UInt64) { gate.open(()) }
  }
}
