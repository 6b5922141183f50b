// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import AsyncHTTPClient
internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkTransport
internal import NIOCore
internal import Synchronization

/// The state that the exchanges of a service share.
final class ServiceCore: Sendable {
  private struct State {
    var isClosed = false
    var closing: Task<Void, Never>?
    var open = 0
    var counters = HTTPCounters()
    var cache: HTTPCache
  }

  let configuration: HTTPConfiguration
  let client: HTTPClient
  let flights: FlightTable
  /// Identifies this service, even after it is gone.
  let number = UniqueNumber.next()
  private let state: Mutex<State>

  init(_ configuration: HTTPConfiguration) throws(LongLinkError) {
    try configuration.validate()
    let flights = FlightTable()
    self.flights = flights
    self.configuration = configuration
    // The threads are shared by the process; the client and its connections belong to this service.
    client = HTTPClient(
      eventLoopGroupProvider: .singleton, configuration: try configuration.client(flights))
    state = Mutex(State(cache: HTTPCache(limit: configuration.cacheBytes)))
  }

  /// Takes a place for an exchange. Throws if there is none or the service is closed.
  func enter(_ purpose: ExchangePurpose) throws(LongLinkError) -> ExchangePlace {
    let most = configuration.maxExchanges
    let problem = state.withLock(of: self) { state -> LongLinkError.Code? in
      if state.isClosed { return .closed }
      if state.open >= most { return .overloaded }
      state.open += 1
      state.counters.exchanges += 1
      return nil
    }
    if let problem {
      let detail =
        problem == .closed
        ? "the service was closed"
        : "\(most) exchanges are in progress; raise maxExchanges or wait for some of them"
      throw purpose.failure(problem, delivery: .notSent, detail)
    }
    return ExchangePlace(self)
  }

  /// Frees a place.
  func leave() {
    state.withLock(of: self) { $0.open -= 1 }
  }

  func count(_ field: WritableKeyPath<HTTPCounters, UInt64>) {
    state.withLock(of: self) { $0.counters[keyPath: field] += 1 }
  }

  var counters: HTTPCounters {
    state.withLock(of: self) { state in
      var counters = state.counters
      counters.open = state.open
      counters.cachedResponses = state.cache.count
      counters.cachedBytes = state.cache.bytes
      return counters
    }
  }

  func withCache<Value: Sendable>(_ body: (inout HTTPCache, LinkInstant) -> Value) -> Value {
    let now = LinkInstant(nanoseconds: Int64(clamping: NIODeadline.now().uptimeNanoseconds))
    return state.withLock(of: self) { body(&$0.cache, now) }
  }

  var isOpen: Bool { state.withLock(of: self) { !$0.isClosed } }

  /// Refuses new exchanges, and ends running ones with their connections. Every caller returns only
  /// after that.
  func close() async {
    let closing = state.withLock(of: self) { state -> Task<Void, Never>? in
      if !state.isClosed {
        state.isClosed = true
        state.closing = Task { [client] in try? await client.shutdown() }
      }
      return state.closing
    }
    await closing?.value
  }

  /// Closes the client of a dropped service, which has no exchanges any more.
  func abandon() {
    let isFirst = state.withLock(of: self) { state in
      defer { state.isClosed = true }
      return !state.isClosed
    }
    if isFirst { client.shutdown().whenComplete { _ in } }
  }

  deinit { abandon() }
}

/// A snapshot of the counters of an ``HTTPService`` since it was made.
public struct HTTPCounters: Hashable, Sendable {
  /// Exchanges that were begun, without those that the cache answered without asking the server.
  public internal(set) var exchanges: UInt64 = 0
  /// Attempts to send a request to a server, including those after redirects, challenges and
  /// retries.
  public internal(set) var requests: UInt64 = 0
  /// Redirects that were followed.
  public internal(set) var redirects: UInt64 = 0
  /// Responses with 401 after which the request was sent again, with an answer or another token.
  public internal(set) var challenges: UInt64 = 0
  /// Requests that were sent again after a lost connection.
  public internal(set) var retries: UInt64 = 0
  /// Exchanges that the cache answered, some after the server said that the response is still
  /// valid.
  public internal(set) var cacheHits: UInt64 = 0
  /// Exchanges that are running.
  public internal(set) var open = 0
  /// Responses in the cache.
  public internal(set) var cachedResponses = 0
  /// The approximate size of the responses in the cache, in bytes.
  public internal(set) var cachedBytes = 0
}
#endif
