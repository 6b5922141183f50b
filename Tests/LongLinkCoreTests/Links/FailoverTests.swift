// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// Several servers: which one is tried when, and what makes a client leave one.
@Suite struct FailoverTests {
  private let most = { UInt64.max }

  /// Lets rounds fail; returns which servers were tried and the windows of the pauses.
  private func fail(
    _ machine: inout LinkMachine, _ count: Int, from start: Int64 = 0
  ) -> (tried: [LinkMachine.Target], windows: [Int64]) {
    var (tried, windows, now) = ([LinkMachine.Target](), [Int64](), start)
    for _ in 0..<count {
      tried.append(machine.target)
      machine.resolved(round: machine.round, addresses: 0, at: .ms(now), bits: { 1 << 62 })
      windows.append((machine.takeWait()?.window ?? -1) / 1_000_000)
      let until = machine.deadline
      now = (until - .start) / 1_000_000 + 1
      machine.elapsed(to: .ms(now), bits: { 1 << 62 })
    }
    return (tried, windows)
  }

  @Test func `every server has its try before the window grows`() {
    var machine = LinkMachine.make([0, 1, 2]) { $0.coolDown = .seconds(100) }
    machine.start(at: .ms(0), bits: most)
    let (tried, windows) = fail(&machine, 7)
    #expect(tried.prefix(3) == [.listed(0), .listed(1), .listed(2)])
    #expect(windows == [1000, 1000, 1000, 2000, 4000, 8000, 16_000])
    #expect(machine.failures == 7 && machine.counts.coolDowns == 7)
  }

  @Test func `the server that was lost is asked again first, unless it was silent`() {
    var closed = LinkMachine.up([0, 1])
    closed.ended(1, .closedByPeer, at: .ms(0), bits: most)
    closed.elapsed(to: .ms(1000), bits: most)
    #expect(closed.target == .listed(0) && closed.counts.failovers == 0)
    var silent = LinkMachine.up([0, 1])
    silent.ended(1, .heartbeatLost, at: .ms(0), bits: { 1 << 63 })
    silent.elapsed(to: .ms(2500), bits: most)
    #expect(silent.target == .listed(1))
    silent.finishRound(up: true, at: 2500)
    #expect(silent.counts.failovers == 1 && silent.counts.coolDowns == 1)
  }

  @Test func `a server that greets and ends is left for another`() {
    var machine = LinkMachine.up([0, 1], works: false)
    machine.ended(1, .closedByPeer, at: .ms(0), bits: most)
    #expect(machine.failures == 1)
    machine.elapsed(to: .ms(1000), bits: most)
    #expect(machine.target == .listed(1))
  }

  @Test func `too many errors move the requests to another server, link first`() {
    var machine = LinkMachine.up([0, 0]) {
      $0.errorRatio = ErrorRatio(minimumRequests: 10, ratio: 0.5, window: 20)
    }
    let first = machine.target
    for index in 0..<30 { machine.outcome(1, isError: index % 5 > 2, at: .ms(1), bits: most) }
    #expect(machine.take() == [], "two of five")
    machine.outcome(1, isError: true, at: .ms(2), bits: most)
    machine.outcome(99, isError: true, at: .ms(2), bits: most)
    #expect(machine.state == .connected(1))
    machine.outcome(1, isError: true, at: .ms(3), bits: most)
    guard case .resolve(let other, round: 2) = machine.take().first else {
      Issue.record("no round")
      return
    }
    #expect(other != first)
    #expect(machine.state == .migrating(1, to: other))
    machine.resolved(round: 2, addresses: 1, at: .ms(4), bits: most)
    #expect(machine.take() == [.connect(2, address: 0)])
    machine.established(2, provenAfter: 1, at: .ms(5), bits: most)
    #expect(machine.take() == [.use(2), .retire(1)])
    #expect(machine.counts.failovers == 1 && machine.counts.migrations == 1)
    // The bad one cools down.
    machine.worked(2)
    machine.ended(2, .closedByPeer, at: .ms(6), bits: { 0 })
    machine.elapsed(to: .ms(6), bits: most)
    #expect(machine.target == other)
  }

  @Test func `a bad server is better than none`() {
    var machine = LinkMachine.up([0]) { $0.errorRatio = ErrorRatio(minimumRequests: 1, ratio: 0.1) }
    for _ in 0..<50 { machine.outcome(1, isError: true, at: .ms(1), bits: most) }
    #expect(machine.take() == [] && machine.state == .connected(1))
  }

  @Test func `errors that are few enough, or that are long ago, do not count`() {
    var machine = LinkMachine.up([0, 1]) {
      $0.errorRatio = ErrorRatio(minimumRequests: 4, ratio: 1, window: 4)
    }
    for index in 0..<100 { machine.outcome(1, isError: index % 4 != 0, at: .ms(1), bits: most) }
    #expect(machine.state == .connected(1))
    for _ in 0..<4 { machine.outcome(1, isError: true, at: .ms(1), bits: most) }
    #expect(machine.state == .migrating(1, to: .listed(1)))
  }

  // MARK: The preferred server

  /// A machine whose link is to the second of two servers.
  private func onSecond() -> LinkMachine {
    var machine = LinkMachine.make([0, 1]) { $0.preferredRetry = .seconds(10) }
    machine.start(at: .ms(0), bits: most)
    machine.finishRound(up: false, at: 0)
    machine.elapsed(to: .ms(1000), bits: most)
    let link = machine.finishRound(up: true, at: 1000)
    machine.worked(link)
    _ = machine.take()
    return machine
  }

  @Test func `a better server is tried in the background and taken once its handshake is done`() {
    var machine = onSecond()
    #expect(machine.state == .connected(1) && machine.deadline == .ms(13_000))
    machine.elapsed(to: .ms(13_000), bits: most)
    #expect(machine.take() == [.resolve(.listed(0), round: 3)])
    #expect(machine.state == .migrating(1, to: .listed(0)))
    machine.resolved(round: 3, addresses: 2, at: .ms(13_000), bits: most)
    #expect(machine.take() == [.connect(2, address: 0)])
    #expect(machine.isCurrent(1) == true)
    machine.established(2, provenAfter: 1, at: .ms(13_100), bits: most)
    #expect(machine.take() == [.use(2), .retire(1)])
    #expect(machine.state == .connected(2))
    #expect(machine.counts.migrations == 1 && machine.counts.failovers == 1)
  }

  @Test func `a better server that fails does not affect the present link, and cools down`() {
    var machine = onSecond()
    machine.elapsed(to: .ms(13_000), bits: most)
    machine.finishRound(up: false, at: 13_000)
    #expect(machine.state == .connected(1) && machine.failures == 0)
    // It failed at 0 as well: it cools down for 10 s now, and the next try is 12 s away.
    #expect(machine.deadline == .ms(25_000))
    machine.elapsed(to: .ms(25_000), bits: most)
    machine.finishRound(up: false, at: 25_000)
    machine.elapsed(to: .ms(37_000), bits: most)
    #expect(machine.take() == [], "it cools down for 20 s")
    machine.elapsed(to: .ms(49_000), bits: most)
    #expect(machine.take() == [.resolve(.listed(0), round: 5)])
  }

  @Test func `the round for a better server serves when the present link is lost meanwhile`() {
    var machine = onSecond()
    machine.elapsed(to: .ms(13_000), bits: most)
    machine.resolved(round: 3, addresses: 1, at: .ms(13_000), bits: most)
    machine.ended(1, .closedByPeer, at: .ms(13_001), bits: most)
    #expect(machine.state == .connecting(.listed(0)))
    _ = machine.take()
    machine.established(2, provenAfter: 1, at: .ms(13_002), bits: most)
    #expect(machine.take() == [.use(2)])
  }

  @Test func `servers that name each other keep a client from its list only for a while`() {
    var machine = LinkMachine.up([0])
    machine.peerLeft(1, .goneAway(.draining), hint: nil, alternatives: 1, at: .ms(0), bits: most)
    machine.ended(1, .goneAway(.draining), at: .ms(0), bits: most)
    var tried: [LinkMachine.Target] = []
    for _ in 0..<12 {
      tried.append(machine.target)
      machine.resolved(round: machine.round, addresses: 1, at: .ms(0), bits: most)
      for case .connect(let attempt, _) in machine.take() {
        machine.turnedAway(attempt, hint: nil, alternatives: 1, at: .ms(0))
        machine.failed(attempt, at: .ms(0), bits: most)
      }
      machine.elapsed(to: machine.deadline, bits: most)
    }
    let named = (0..<Wire.alternativesLimit).map { LinkMachine.Target.alternative($0) }
    #expect(Array(tried.prefix(named.count)) == named)
    #expect(tried.dropFirst(named.count).allSatisfy { $0 == .listed(0) }, "\(tried)")
  }

  @Test func `the best server has no better one`() {
    let machine = LinkMachine.up([0, 1])
    #expect(machine.deadline == .distantFuture)
  }
}
