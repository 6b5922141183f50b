// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// Which server is next.
@Suite struct ServerListTests {
  private func list(_ servers: [(priority: Int, weight: Int)]) -> ServerList {
    var policy = ReconnectPolicy()
    policy.coolDown = .seconds(5)
    policy.longestCoolDown = .seconds(60)
    return ServerList(
      servers.map { ServerList.Entry(priority: $0.priority, weight: $0.weight) }, policy: policy)
  }

  private let none = { () -> UInt64 in
    Issue.record("there is nothing to draw for")
    return 0
  }

  @Test func `the lowest priority number comes first`() {
    var list = list([(2, 1), (1, 1), (3, 1)])
    #expect(list.choice(at: .ms(0), bits: none) == 1)
    list.failed(1, at: .ms(0))
    #expect(list.choice(at: .ms(0), bits: none) == 0)
    list.failed(0, at: .ms(1))
    #expect(list.choice(at: .ms(1), bits: none) == 2)
    list.failed(2, at: .ms(2))
    #expect(list.choice(at: .ms(3), bits: none) == 1, "the one that is ready first")
    #expect(list.choice(at: .ms(5000), bits: none) == 1)
    #expect(list.choice(at: .ms(9000), bits: none) == 1)
  }

  @Test func `each server is tried before one is tried again`() {
    var list = list([(0, 1), (1, 1), (2, 1)])
    var order: [Int] = []
    for now in stride(from: Int64(0), to: 60_000, by: 10_000) {
      // Far enough apart for the first to be ready again.
      let next = list.choice(at: .ms(now), bits: none)
      order.append(next)
      list.tried(next)
      #expect(list.hasUntried(at: .ms(now)) == (order.count < 3))
    }
    #expect(order == [0, 1, 2, 0, 0, 0])
    list.forgetTries()
    #expect(list.hasUntried(at: .ms(0)))
  }

  @Test func `servers of equal priority are chosen by weight`() {
    let list = list([(0, 1), (0, 6), (0, 3), (1, 1_000)])
    var dice = Seeded(9)
    var counts = [0, 0, 0, 0]
    for _ in 0..<10_000 { counts[list.choice(at: .ms(0)) { dice.next() }] += 1 }
    #expect(counts[3] == 0)
    #expect(abs(counts[0] - 1000) < 120 && abs(counts[1] - 6000) < 200, "\(counts)")
    #expect(list.choice(at: .ms(0)) { 0 } == 0)
    #expect(list.choice(at: .ms(0)) { .max } == 2)
  }

  @Test func `a server cools down for longer each time, until it works`() {
    var list = list([(0, 1), (1, 1)])
    var lengths: [Int64] = []
    for _ in 0..<6 {
      list.failed(0, at: .ms(0))
      var milliseconds: Int64 = 0
      while !list.isReady(0, at: .ms(milliseconds)) { milliseconds += 1000 }
      lengths.append(milliseconds)
    }
    #expect(lengths == [5000, 10_000, 20_000, 40_000, 60_000, 60_000])
    for _ in 0..<100 { list.failed(0, at: .ms(0)) }
    #expect(list.isReady(0, at: .ms(60_000)))
    list.succeeded(0)
    #expect(list.isReady(0, at: .ms(0)))
    list.failed(0, at: .ms(0))
    #expect(list.isReady(0, at: .ms(5000)))
  }

  @Test func `better and other servers`() {
    var list = list([(0, 1), (0, 1), (1, 1)])
    #expect(!list.hasBetter(than: 0) && !list.hasBetter(than: 1) && list.hasBetter(than: 2))
    #expect(list.hasBetter(than: nil), "than one that is not listed")
    #expect(list.better(than: 0, at: .ms(0), bits: none) == nil)
    #expect(list.better(than: 2, at: .ms(0)) { .max } == 1)
    #expect(list.other(than: 0, at: .ms(0), bits: none) == 1)
    list.failed(1, at: .ms(0))
    #expect(list.better(than: 2, at: .ms(0), bits: none) == 0)
    #expect(list.other(than: 0, at: .ms(0), bits: none) == 2)
    list.failed(0, at: .ms(0))
    list.failed(2, at: .ms(0))
    #expect(list.better(than: 2, at: .ms(0), bits: none) == nil)
    #expect(list.better(than: nil, at: .ms(0), bits: none) == nil)
    #expect(list.other(than: 0, at: .ms(0), bits: none) == nil)
    #expect(list.hasBetter(than: 2), "later")
  }

  @Test func `what was learned of a server outlives a change of the list`() {
    var list = list([(0, 1), (1, 1)])
    list.failed(0, at: .ms(0))
    list.failed(0, at: .ms(0))
    list.replace(
      with: [ServerList.Entry(priority: 5, weight: 1), ServerList.Entry(priority: 0, weight: 1)],
      kept: [nil, 0])
    #expect(list.isReady(0, at: .ms(0)))
    #expect(!list.isReady(1, at: .ms(9999)) && list.isReady(1, at: .ms(10_000)))
    #expect(list.choice(at: .ms(0), bits: none) == 0)
  }
}
