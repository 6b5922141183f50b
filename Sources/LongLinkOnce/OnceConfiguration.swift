// SPDX-License-Identifier: Apache-2.0

package import LongLinkDriver
internal import LongLinkCore
public import LongLinkOnceStore
public import LongLinkServer
package import LongLinkTransport

/// How a server runs requests once: where it keeps the records of those that have run, and for how
/// long.
///
/// A client whose request has `retry = .once` gets the answer of the one run, even if it repeats
/// the request over another connection, or, with a store that outlives the process, to the next
/// process. The handler of such a request is not cancelled when the connection ends.
public struct OnceConfiguration: Sendable {
  /// Where the records are kept: `.memory()`, or a store that outlives the process.
  public var store: any OnceStore
  /// For how long a record is kept after the request was first sent or has arrived, whichever is
  /// later: 1 ms to 49 days. Default: 300 s. Servers that share a store must have the same.
  ///
  /// To change it is like a new name of the store: clients do not repeat requests that may have
  /// run, which fail with delivery `sent`. Change it on all servers that share the store at once.
  public var retention: Duration
  /// The largest body of a response that is kept, in bytes; at least 0. Default: 65,536. A larger
  /// one is sent to the clients that wait for it; if its request comes later, the answer is 410.
  public var maxKeptResponse: Int
  /// The most time that the server waits for one call of the store; above zero. Default: 5 s. Then
  /// the request is answered without the store: with 503 if the handler was not called yet, and
  /// with the handler's response otherwise.
  public var storeTimeout: Duration
  /// The most handlers that still run although the requests for which they were called have ended,
  /// with their connections or otherwise: at least 4. Default: 10,000.
  ///
  /// When there are so many, requests with new keys are refused with 429; those of one scope, when
  /// it has a quarter of them, and those of all clients without a principal, when these have a
  /// quarter together. Since handlers that run already can still lose their requests, there can be
  /// more.
  public var maxDetachedHandlers: Int
  /// The most time that a handler runs on after the request for which it was called has ended;
  /// above zero. Default: 300 s.
  ///
  /// Then it is cancelled, and what it returns is kept. If it has not returned 30 s later, its
  /// request is answered with 410 as long as it runs on.
  public var detachedHandlerTimeout: Duration

  /// Makes a configuration with a store.
  public init(
    store: any OnceStore, retention: Duration = .seconds(300), maxKeptResponse: Int = 65_536,
    storeTimeout: Duration = .seconds(5), maxDetachedHandlers: Int = 10_000,
    detachedHandlerTimeout: Duration = .seconds(300)
  ) {
    self.store = store
    self.retention = retention
    self.maxKeptResponse = maxKeptResponse
    self.storeTimeout = storeTimeout
    self.maxDetachedHandlers = maxDetachedHandlers
    self.detachedHandlerTimeout = detachedHandlerTimeout
  }

  var retentionMilliseconds: Int64 { retention.clampedNanoseconds / 1_000_000 }
}

extension ServerConfiguration {
  /// How the server runs requests whose `retry` is `once`, so that each runs at most once.
  ///
  /// Default nil: it runs none, and such a request of a client fails with `unsupported`. The
  /// idempotency key of any other request is only passed to its handler.
  public var once: OnceConfiguration? {
    get { onceProvider as? OnceConfiguration }
    set { onceProvider = newValue }
  }
}

extension OnceConfiguration: OnceProvider {
  package func validate() throws(LongLinkError) {
    if !(1...Int64(UInt32.max)).contains(retentionMilliseconds) {
      throw .configuration("once.retention", "\(retention) is not from 1 ms to 49 days")
    }
    if maxKeptResponse < 0 {
      throw .configuration("once.maxKeptResponse", "\(maxKeptResponse) is below 0")
    }
    if storeTimeout <= .zero {
      throw .configuration("once.storeTimeout", "\(storeTimeout) is not above zero")
    }
    if maxDetachedHandlers < 4 {
      throw .configuration("once.maxDetachedHandlers", "\(maxDetachedHandlers) is below 4")
    }
    if detachedHandlerTimeout <= .zero {
      throw .configuration(
        "once.detachedHandlerTimeout", "\(detachedHandlerTimeout) is not above zero")
    }
  }

  package func start(
    on loop: EventLoop, log: PeerLog
  ) async throws(LongLinkError) -> any OnceKeeper {
    let random = await loop.run { loop.driver.nextRandom() }
    if let memory = store as? MemoryOnceStore {
      return OnceTable(
        self, memory.statusNow, at: loop.driver.now, counting: random, log: log)
    }
    let gate = Gate<Result<OnceStoreStatus, any Error>?>()
    let (store, timeout) = (store, storeTimeout.clampedNanoseconds)
    await loop.run {
      StoreCall.begin(on: loop, within: timeout) {
        try await store.status()
      } then: { outcome in
        switch outcome {
        case .returned(let result): gate.open(result)
        case .late: gate.open(nil)
        case .returnedLate: break
        }
      }
    }
    switch await gate.value {
    case .success(let status):
      return OnceTable(self, status, at: loop.driver.now, counting: random, log: log)
    case .failure(let error):
      throw LongLinkError(
        .connectFailed, doing: "start the server",
        detail: "the store of `once` does not say its name and time: \(PeerText("\(error)"))")
    case nil:
      throw LongLinkError(
        .connectFailed, doing: "start the server",
        detail: "the store of `once` has not said its name and time within \(storeTimeout)")
    }
  }
}
