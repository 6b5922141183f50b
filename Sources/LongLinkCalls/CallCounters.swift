// SPDX-License-Identifier: Apache-2.0

/// What a call client has counted since it was made.
public struct CallCounters: Hashable, Sendable {
  /// Calls that were made.
  public let calls: UInt64
  /// Requests that were made for them, and to fill the cache.
  public let exchanges: UInt64
  /// Calls that joined an exchange which was under way.
  public let shared: UInt64
  /// Calls that were answered out of the cache.
  public let cacheHits: UInt64
  /// Calls that were answered out of the cache by an answer of which a new one is fetched.
  public let staleHits: UInt64
  /// Calls that found nothing in the cache.
  public let cacheMisses: UInt64
  /// Requests that were made to fetch a new answer for the cache.
  public let refreshes: UInt64
  /// Times that answers were forgotten since somebody, or a push, said so.
  public let invalidations: UInt64
  /// Answers that the cache dropped, or did not take, for want of room.
  public let evictions: UInt64
  /// Answers that are in the cache now.
  public let cachedAnswers: Int
  /// What they take, in bytes.
  public let cachedBytes: Int
  /// Exchanges that have not ended.
  public let exchangesOpen: Int
  /// Calls that have not ended.
  public let callsOpen: Int
  /// Events that were dropped since a consumer fell behind.
  public let eventsDropped: UInt64
  /// Sequences of events that ended since a consumer fell behind.
  public let eventSequencesClosed: UInt64
}

/// What the core counts itself.
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
