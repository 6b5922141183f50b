// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkDriver
import LongLinkCore
@_spi(Loop) import LongLinkTransport

/// The state of one call client on the client's loop: calls, exchanges, the cache and events.
final class CallCore {
  let client: LongLinkClient
  let loop: EventLoop
  let configuration: CallConfiguration
  let events: BroadcastList<MessageType, CallEvent>
  var cache: ResponseCache
  /// Unordered: code that iterates it must not depend on the order.
  var exchanges: [UInt64: SharedRequest] = [:]
  var callers: [UInt64: Caller] = [:]
  /// The exchanges that identical calls can join, by key.
  var exchangeOfKey: [CallKey: UInt64] = [:]
  private var nextID: UInt64 = 0
  var counters = CallCounts()
  /// The request types whose responses a push invalidates, by type of the push.
  var invalidations: [MessageType: [MessageType]] = [:]
  /// All request types in `invalidations`.
  var dependents: Set<MessageType> = []
  /// The number of invalidations of each type; then the number of lost connections, and of
  /// invalidations of all types.
  var generations: [MessageType: UInt64] = [:]
  var linkGeneration: UInt64 = 0
  var wholeGeneration: UInt64 = 0
  var wasConnected = false

  /// The invalidation counts when an exchange began; its response is current while they are equal.
  struct Generation: Equatable {
    var ofType: UInt64
    var ofLink: UInt64
    var ofAll: UInt64
  }

  /// One exchange in flight, and the calls that share it.
  final class SharedRequest {
    let plan: CallPlan
    let options: RequestOptions
    var deadline: LinkInstant
    /// The numbers of the calls that share the exchange, in the order in which they joined.
    var callers: [UInt64]
    /// Whether the exchange refreshes the cache, and so continues without callers.
    let isRefresh: Bool
    let generation: Generation
    /// Whether the exchange's key was invalidated after the exchange had begun.
    var isInvalidated = false
    var cache: CachePolicy?
    var task: (any CallExchange)?
    /// The delivery of earlier exchanges of the same callers.
    var past = Delivery.notSent
    /// Whether the exchange is being cancelled because the client was closed.
    var isClosed = false
    /// The last caller, after it has left, and the code of its error; nil before.
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
    /// The timer of the caller's deadline; nil if the exchange's deadline is not later.
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
  /// Makes a call. Returns the number to pass to `leave`, or nil if it ended at once. `completion`
  /// is called once, perhaps before this returns.
  func begin(_ plan: CallPlan, _ completion: @escaping (Outcome) -> Void) -> UInt64? {
    counters.calls += 1
    if let cache = plan.cache { register(cache, of: plan.type) }
    if let body = cached(plan) {
      completion(.success(body))
      return nil
    }
    nextID += 1
    let id = nextID
    let deadline = loop.now.advanced(
      by: plan.options.timeout ?? client.configuration.timeouts.request)
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
            code, delivery: .sent, doing: exchange.plan.operation,
            detail: "the request continues for other calls")))
      return
    }
    // No call may join an exchange that is being cancelled.
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

  /// Makes a request to refresh the cache, unless one is in flight.
  private func refresh(_ plan: CallPlan, _ key: CallKey) {
    if let id = exchangeOfKey[key], let exchange = exchanges[id], isCurrent(exchange) { return }
    counters.refreshes += 1
    let deadline = loop.now.advanced(
      by: plan.options.timeout ?? client.configuration.timeouts.request)
    launch(plan, until: deadline, isRefresh: true, callers: []) { _ in }
  }

  /// Returns the exchange in flight that a new call can share.
  private func exchangeToJoin(_ plan: CallPlan) -> UInt64? {
    guard plan.isShared, let key = plan.key, let id = exchangeOfKey[key],
      let exchange = exchanges[id], isCurrent(exchange),
      exchange.plan.sharedTerms == plan.sharedTerms
    else { return nil }
    return id
  }

  func launch(
    _ plan: CallPlan, until deadline: LinkInstant, isRefresh: Bool, callers: [UInt64],
    cache: CachePolicy? = nil, past: Delivery = .notSent, ticket: OnceTicket? = nil,
    ready: (UInt64) -> Void
  ) {
    nextID += 1
    let id = nextID
    var options = plan.options
    options.timeout = loop.now.duration(to: deadline)
    if let ticket {
      options.ticket = ticket
    } else if options.runsOnce, options.ticket == nil {
      // Made here, so that a later exchange of the same callers states the same.
      let key = options.idempotencyKey
      options.ticket = OnceTicket(key: key.isEmpty ? loop.randomKey() : key)
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
    if configuration.interceptors.isEmpty {
      let bound = LoopBound(self, on: loop)
      exchange.task = carry(plan, options) { bound.value.ended(id, $0) }
    } else {
      let intercepted = InterceptedExchange(plan, until: deadline, self) { [unowned self] in
        ended(id, $0)
      }
      exchange.task = intercepted.begin(options, isRefresh: isRefresh)
    }
    if !endsWithLink(plan), client.state == .closed { close(exchange) }
  }

  /// Sends a request over the client's link, or has the plan's carrier carry it out.
  ///
  /// `completion` is called once, in a later job.
  func carry(
    _ plan: CallPlan, _ options: RequestOptions, _ completion: @escaping @Sendable (Outcome) -> Void
  ) -> any CallExchange {
    if let carrier = plan.carrier { return carrier.begin(options, on: loop, completion) }
    return RequestHandle(
      client.senderPort.port, plan.type, plan.method, RequestBody(plan.body), options,
      .connectionLoop, completion)
  }

  /// Whether closing the client's link is enough to end an exchange of this plan.
  func endsWithLink(_ plan: CallPlan) -> Bool {
    plan.carrier == nil && configuration.interceptors.isEmpty
  }
}
