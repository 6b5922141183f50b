// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkDriver
import LongLinkCore
import LongLinkTesting
import Testing

@testable import LongLinkCalls

/// The cache as a value: what it holds, for how long, and what leaves.
@Suite struct ResponseCacheTests {
  private func key(_ number: UInt8, type: MessageType = 1) -> CallKey {
    CallKey(type: type, bytes: [number], metadata: [:], idempotencyKey: [])
  }

  private func at(_ seconds: Int64) -> LinkInstant {
    LinkInstant(nanoseconds: seconds * 1_000_000_000)
  }

  private let entrySize = 100 + 1 + ResponseCache.overhead
  private let body = [UInt8](repeating: 5, count: 100)

  @Test func `an answer is fresh, then stale, then gone`() {
    var cache = ResponseCache(limit: 10_000)
    cache.store([1], for: key(1), CachePolicy(fresh: .seconds(60), stale: .seconds(30)), at: at(0))
    #expect(cache.find(key(1), at: at(59)) == .fresh([1]))
    #expect(cache.find(key(1), at: at(60)) == .stale([1]))
    #expect(cache.find(key(1), at: at(89)) == .stale([1]))
    #expect(cache.find(key(1), at: at(90)) == .nothing)
    #expect(cache.count == 0 && cache.bytes == 0)
  }

  @Test func `the least recently used response is evicted first`() {
    var cache = ResponseCache(limit: entrySize * 3)
    for number: UInt8 in 1...3 { cache.store(body, for: key(number), CachePolicy(), at: at(0)) }
    #expect(cache.count == 3 && cache.bytes == entrySize * 3 && cache.evicted == 0)
    _ = cache.find(key(1), at: at(1))
    cache.store(body, for: key(4), CachePolicy(), at: at(1))
    #expect(cache.find(key(2), at: at(1)) == .nothing)
    for number: UInt8 in [1, 3, 4] { #expect(cache.find(key(number), at: at(1)) == .fresh(body)) }
    #expect(cache.evicted == 1 && cache.bytes == entrySize * 3)
  }

  @Test func `a large response evicts several others, and one that is too large none`() {
    var cache = ResponseCache(limit: entrySize * 4)
    for number: UInt8 in 1...4 { cache.store(body, for: key(number), CachePolicy(), at: at(0)) }
    cache.store([UInt8](repeating: 1, count: 400), for: key(5), CachePolicy(), at: at(0))
    #expect(cache.count == 3 && cache.evicted == 2)
    #expect(cache.bytes <= cache.limit)
    cache.store([UInt8](repeating: 1, count: 5_000), for: key(6), CachePolicy(), at: at(0))
    #expect(cache.count == 3 && cache.evicted == 3)
    // The old answer is invalid all the same.
    cache.store([UInt8](repeating: 1, count: 5_000), for: key(5), CachePolicy(), at: at(0))
    #expect(cache.find(key(5), at: at(0)) == .nothing)
  }

  @Test func `removed responses free their bytes`() {
    var cache = ResponseCache(limit: 100_000)
    for number: UInt8 in 1...10 {
      cache.store(body, for: key(number), CachePolicy(), at: at(0))
      cache.store(
        body, for: key(number, type: 2), CachePolicy(), dependsOnPushes: true, at: at(0))
    }
    cache.remove(key(1))
    #expect(cache.count == 19)
    cache.removeAll(of: 1)
    #expect(cache.count == 10 && cache.bytes == entrySize * 10)
    cache.store(body, for: key(1), CachePolicy(), at: at(0))
    cache.removeDependent()
    #expect(cache.count == 1 && cache.find(key(1), at: at(0)) == .fresh(body))
    cache.removeAll()
    #expect(cache.count == 0 && cache.bytes == 0)
  }

  @Test func `it agrees with a plain model over many steps`() {
    var generator = SeededGenerator(seed: 7)
    var cache = ResponseCache(limit: entrySize * 8)
    // The oldest first.
    var model: [(key: CallKey, body: [UInt8])] = []
    for step in 0..<20_000 {
      let key = key(UInt8.random(in: 0..<20, using: &generator))
      let place = model.firstIndex { $0.key == key }
      switch Int.random(in: 0..<10, using: &generator) {
      case 0..<4:
        let body = [UInt8](repeating: UInt8(truncatingIfNeeded: step), count: 100)
        cache.store(body, for: key, CachePolicy(), at: at(0))
        if let place { model.remove(at: place) }
        model.append((key, body))
        if model.count > 8 { model.removeFirst() }
      case 4:
        cache.remove(key)
        if let place { model.remove(at: place) }
      default:
        let found = cache.find(key, at: at(1))
        #expect(found == (place.map { .fresh(model[$0].body) } ?? .nothing))
        if let place { model.append(model.remove(at: place)) }
      }
      #expect(cache.count == model.count && cache.bytes == entrySize * model.count)
    }
  }
}
