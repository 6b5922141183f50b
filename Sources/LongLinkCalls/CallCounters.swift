// SPDX-License-Identifier: Apache-2.0

/// A snapshot of a call client's counters since it was made.
public struct CallCounters: Hashable, Sendable {
  /// Calls that were made.
  public let calls: UInt64
  /// Exchanges begun, for calls and to refresh the cache. With interceptors, one exchange may make
  /// several requests or none.
  public let exchanges: UInt64
  /// Calls that joined an exchange in progress.
  public let shared: UInt64
  /// Calls answered by a fresh cached response.
  public let cacheHits: UInt64
  /// Calls answered by a stale cached response, which is being refreshed.
  public let staleHits: UInt64
  /// Calls that looked for a response in the cache and found none.
  public let cacheMisses: UInt64
  /// Exchanges begun to refresh the cache; they also count in `exchanges`.
  public let refreshes: UInt64
  /// Invalidations by the application, by pushes, by switching servers, and by responses that do
  /// not decode.
  public let invalidations: UInt64
  /// Responses evicted from the cache, or too large for it.
  public let evictions: UInt64
  /// Responses in the cache.
  public let cachedAnswers: Int
  /// The size of the cached responses in bytes, as `CallConfiguration.cacheBytes` counts it.
  public let cachedBytes: Int
  /// Exchanges that have not ended.
  public let exchangesOpen: Int
  /// Calls that have not ended.
  public let callsOpen: Int
  /// Events dropped because a consumer fell behind.
  public let eventsDropped: UInt64
  /// Sequences of events that ended because a consumer fell behind.
  public let eventSequencesClosed: UInt64
}

/// The counters that the core keeps itself.
struct CallCounts {
  var calls: UInt64 = 0
  var exchanges: UInt64 = 0
  var shared: UInt64 = 0
  var cacheHits: UInt64 = 0
  var staleHits: UInt64 = 0
  var cacheMisses: UInt64 = 0
  var refreshes: UInt64 = 0
  var invalidations: UInt64 = 0
}

extension CallCore {
  var snapshot: CallCounters {
    let events = events.counts
    return CallCounters(
      calls: counters.calls, exchanges: counters.exchanges, shared: counters.shared,
      cacheHits: counters.cacheHits, staleHits: counters.staleHits,
      cacheMisses: counters.cacheMisses, refreshes: counters.refreshes,
      invalidations: counters.invalidations, evictions: cache.evicted, cachedAnswers: cache.count,
      cachedBytes: cache.bytes, exchangesOpen: openExchanges, callsOpen: openCallers,
      eventsDropped: events.dropped, eventSequencesClosed: events.closed)
  }
}
