// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

/// Responses by the keys of their calls, bounded in bytes; evicts the least recently used first.
struct ResponseCache {
  enum Found: Equatable {
    case nothing
    case fresh([UInt8])
    /// A stale response, which may be used but should be refreshed.
    case stale([UInt8])
  }

  private struct Entry {
    let key: CallKey
    var body: [UInt8]
    var bytes: Int
    var freshUntil: LinkInstant
    var staleUntil: LinkInstant
    /// Whether pushes invalidate the response.
    var dependsOnPushes: Bool
    /// The slots of the entries that were used next after, and last before, this entry.
    var newer: Int?
    var older: Int?
  }

  /// The most bytes of bodies and keys, plus `overhead` for each entry.
  let limit: Int
  /// The approximate bytes of an entry besides its body and key.
  static let overhead = 256

  private var entries: [Entry?] = []
  private var free: [Int] = []
  private var places: [CallKey: Int] = [:]
  private var placesOfType: [MessageType: Set<Int>] = [:]
  private var newest: Int?
  private var oldest: Int?
  private(set) var bytes = 0
  /// Entries that were evicted, and responses that were too large for the cache.
  private(set) var evicted: UInt64 = 0

  init(limit: Int) {
    self.limit = limit
  }

  var count: Int { places.count }

  /// Returns the response for a key, unless it has expired.
  mutating func find(_ key: CallKey, at now: LinkInstant) -> Found {
    guard let place = places[key], let entry = entries[place] else { return .nothing }
    guard now < entry.staleUntil else {
      remove(place)
      return .nothing
    }
    unlink(place)
    link(place)
    return now < entry.freshUntil ? .fresh(entry.body) : .stale(entry.body)
  }

  /// Stores a response that just came, replacing any older one.
  mutating func store(
    _ body: [UInt8], for key: CallKey, _ policy: CachePolicy, dependsOnPushes: Bool = false,
    at now: LinkInstant
  ) {
    remove(key)
    let size = body.count + key.byteCount + Self.overhead
    guard size <= limit else {
      evicted += 1
      return
    }
    while bytes + size > limit, let oldest {
      remove(oldest)
      evicted += 1
    }
    let freshUntil = now.advanced(by: max(.zero, policy.fresh))
    let place = free.popLast() ?? entries.count
    if place == entries.count { entries.append(nil) }
    entries[place] = Entry(
      key: key, body: body, bytes: size, freshUntil: freshUntil,
      staleUntil: freshUntil.advanced(by: max(.zero, policy.stale)),
      dependsOnPushes: dependsOnPushes)
    places[key] = place
    placesOfType[key.type, default: []].insert(place)
    bytes += size
    link(place)
  }

  /// Removes one response.
  mutating func remove(_ key: CallKey) {
    if let place = places[key] { remove(place) }
  }

  /// Removes the responses of one type of request.
  mutating func removeAll(of type: MessageType) {
    // Sorted, because the order of free slots must not depend on the set's random order.
    for place in (placesOfType[type] ?? []).sorted() { remove(place) }
  }

  /// Removes the responses that a lost push might have invalidated.
  mutating func removeDependent() {
    for place in entries.indices where entries[place]?.dependsOnPushes == true { remove(place) }
  }

  /// Removes all responses.
  mutating func removeAll() {
    let evicted = evicted
    self = ResponseCache(limit: limit)
    self.evicted = evicted
  }

  private mutating func remove(_ place: Int) {
    guard let entry = entries[place] else { return }
    unlink(place)
    entries[place] = nil
    free.append(place)
    places[entry.key] = nil
    placesOfType[entry.key.type]?.remove(place)
    if placesOfType[entry.key.type]?.isEmpty == true { placesOfType[entry.key.type] = nil }
    bytes -= entry.bytes
  }

  /// Makes an entry the most recently used.
  private mutating func link(_ place: Int) {
    entries[place]?.older = newest
    entries[place]?.newer = nil
    if let newest { entries[newest]?.newer = place }
    newest = place
    if oldest == nil { oldest = place }
  }

  private mutating func unlink(_ place: Int) {
    guard let entry = entries[place] else { return }
    if let newer = entry.newer { entries[newer]?.older = entry.older } else { newest = entry.older }
    if let older = entry.older { entries[older]?.newer = entry.newer } else { oldest = entry.newer }
  }
}
