// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkDriver
import LongLinkCore
@_spi(Loop) import LongLinkTransport

/// The calls of one call client, on the client's loop: who waits for which exchange, what is
/// cached, and who hears of it.
final class CallCore {
  let client: LongLinkClient
  let loop: EventLoop
  let configuration: CallConfiguration
  let events: BroadcastList<MessageType, CallEvent>
  var cache: ResponseCache
  /// In no order: whoever iterates them does to each what does not depend on the others.
  var exchanges: [UInt64: SharedRequest] = [:]
  var callers: [UInt64: Caller] = [:]
  /// The exchanges by what identical calls are known by.
  var exchangeOfKey: [CallKey: UInt64] = [:]
  private var nextID: UInt64 = 0
  var counters = CallCounts()
  /// Which request types lose their answers with a push, by the type of the push.
  var invalidations: [MessageType: [MessageType]] = [:]
  /// All of those request types.
  var dependents: Set<MessageType> = []
  /// How often the answers of a type, and those of all that depend on pushes, were invalidated.
  var generations: [MessageType: UInt64] = [:]
  var linkGeneration: UInt64 = 0
  var wholeGeneration: UInt64 = 0
  var wasConnected = false
  var pollers: [PollingCore] = []

  /// Which state of the world an exchange asks for.
  struct Generation: Equatable {
    var ofType: UInt64
    var ofLink: UInt64
    var ofAll: UInt64
  }

  /// One request on its way, and the callers that it answers.
  final class SharedRequest {
    let plan: CallPlan
    let options: RequestOptions
    var deadline: LinkInstant
    /// In the order in which they came.
    var callers: [UInt64]
    /// Whether it goes on without callers, to fill the cache.
    let isRefresh: Bool
    let generation: Generation
    /// Whether its call was invalidated after it had begun.
    var isInvalidated = false
    var cache: CachePolicy?
    var task: RequestHandle?
    /// What may have happened in earlier exchanges of the same callers.
    var past = Delivery.notSent
    /// The last caller, which has gone, and how it is to be told.
    var leaver: (code: LongLinkError.Code, completion: (Outcome) -> Void)?

    init(
      plan: CallPlan, options: RequestOptions, deadline: LinkInstant, callers: [UInt64],
      isRefresh: Bool, generation: Generation, cache: CachePolicy?
    ) {
      self.plan = plan
      self.options = options
      self.deadline = deadline
      self.callers = callers
      self.isRefresh = isRefresh
      self.generation = generation
      self.cache = cache
    }
  }

  struct Caller {
    let exchange: UInt64
    let deadline: LinkInstant
    let completion: (Outcome) -> Void
    /// Where the exchange's own deadline does not serve.
    var timer: LoopTimer?
  }

  init(
    _ client: LongLinkClient, _ configuration: CallConfiguration,
    _ events: BroadcastList<MessageType, CallEvent>
  ) {
    self.client = client
    loop = client.loop
    self.configuration = configuration
    self.events = events
    cache = ResponseCache(limit: configuration.cacheBytes)
  }

  var openExchanges: Int { exchanges.count }
  var openCallers: Int { callers.count }
}

// MARK: - Calls

extension CallCore {
  /// Makes a call. `completion` is called once, perhaps before this returns; the number, by which
  /// the caller may leave, is nil then.
  func begin(_ plan: CallPlan, _ completion: @escaping (Outcome) -> Void) -> UInt64? {
    counters.calls += 1
    if let cache = plan.cache { register(cache, of: plan.type) }
    if let body = cached(plan) {
      completion(.success(body))
      return nil
    }
    nextID += 1
    let id = nextID
    let deadline = loop.now.advanced(by: plan.options.timeout ?? client.configuration.timeout)
    if let shared = exchangeToJoin(plan), let exchange = exchanges[shared] {
      counters.shared += 1
      callers[id] = Caller(exchange: shared, deadline: deadline, completion: completion)
      exchange.callers.append(id)
      exchange.cache = exchange.cache ?? plan.cache
      watchDeadline(of: id, on: exchange)
    } else {
      launch(plan, until: deadline, isRefresh: false, callers: [id]) { exchange in
        callers[id] = Caller(exchange: exchange, deadline: deadline, completion: completion)
      }
    }
    return callers[id] == nil ? nil : id
  }

  /// Ends a call for its caller, unless it has ended.
  func leave(_ id: UInt64, code: LongLinkError.Code = .cancelled) {
    guard let caller = remove(id), let exchange = exchanges[caller.exchange] else { return }
    exchange.callers.removeAll { $0 == id }
    guard exchange.callers.isEmpty, !exchange.isRefresh else {
      caller.completion(
        .failure(
          LongLinkError(
            code, delivery: .sent, doing: .request(exchange.plan.type),
            detail: "its exchange goes on for others")))
      return
    }
    // Nobody may join what is being cancelled.
    forget(caller.exchange, exchange.plan.key)
    exchange.leaver = (code, caller.completion)
    exchange.task?.cancel()
  }

  private func cached(_ plan: CallPlan) -> [UInt8]? {
    guard plan.cache != nil, let key = plan.key, !plan.reloads else { return nil }
    switch cache.find(key, at: loop.now) {
    case .fresh(let body):
      counters.cacheHits += 1
      return body
    case .stale(let body):
      counters.staleHits += 1
      refresh(plan, key)
      return body
    case .nothing:
      counters.cacheMisses += 1
      return nil
    }
  }

  /// Fetches a new answer for the cache, unless one is on its way.
  private func refresh(_ plan: CallPlan, _ key: CallKey) {
    if let id = exchangeOfKey[key], let exchange = exchanges[id], isCurrent(exchange) { return }
    counters.refreshes += 1
    let deadline = loop.now.advanced(by: plan.options.timeout ?? client.configuration.timeout)
    launch(plan, until: deadline, isRefresh: true, callers: []) { _ in }
  }

  /// The exchange whose answer is as good as that of one which begins now.
  private func exchangeToJoin(_ plan: CallPlan) -> UInt64? {
    guard plan.isShared, let key = plan.key, let id = exchangeOfKey[key],
      let exchange = exchanges[id], isCurrent(exchange),
      exchange.plan.sharedTerms == plan.sharedTerms
    else { return nil }
    return id
  }

  func launch(
    _ plan: CallPlan, until deadline: LinkInstant, isRefresh: Bool, callers: [UInt64],
    cache: CachePolicy? = nil, past: Delivery = .notSent, key: [UInt8]? = nil,
    ready: (UInt64) -> Void
  ) {
    nextID += 1
    let id = nextID
    var options = plan.options
    options.timeout = loop.now.duration(to: deadline)
    if let key {
      options.idempotencyKey = key
    } else if options.retry == .idempotentByKey, options.idempotencyKey.isEmpty {
      // Kept for another exchange of the same callers.
      options.idempotencyKey = loop.randomKey()
    }
    let exchange = SharedRequest(
      plan: plan, options: options, deadline: deadline, callers: callers, isRefresh: isRefresh,
      generation: generation(of: plan.type), cache: cache ?? plan.cache)
    exchange.past = past
    exchanges[id] = exchange
    if let key = plan.key { exchangeOfKey[key] = id }
    counters.exchanges += 1
    ready(id)
    for caller in callers { watchDeadline(of: caller, on: exchange) }
    let bound = LoopBound(self, on: loop)
    let task = client.request(plan.type, plan.body, options: options, on: .connectionLoop) {
      outcome in
      bound.value.ended(id, outcome)
    }
    exchange.task = task
  }
}
