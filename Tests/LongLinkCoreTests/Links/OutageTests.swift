// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// From which windows the pauses of an outage are drawn.
@Suite struct OutageTests {
  private let most = { UInt64.max }

  /// Lets rounds fail and returns the pauses, in milliseconds.
  private func pauses(_ machine: inout LinkMachine, _ count: Int, from start: Int64) -> [Int64] {
    var now = start
    return (0..<count).map { _ in
      machine.finishRound(up: false, at: now)
      guard case .waiting(let until) = machine.state else { return -1 }
      let pause = (until - .ms(now)) / 1_000_000
      now += pause
      machine.elapsed(to: until, bits: most)
      return pause
    }
  }

  @Test func `the window doubles up to the cap, and at the cap pauses are a period`() {
    var machine = LinkMachine.make()
    machine.start(at: .ms(0), bits: most)
    let drawn = pauses(&machine, 8, from: 0)
    #expect(drawn == [1000, 2000, 4000, 8000, 16_000, 30_000, 36_000, 36_000])
    #expect(machine.failures == 8)
    for (bits, least) in [(UInt64.max, 36_000), (1 << 63, 33_000), (0, 30_000)] as [(UInt64, Int64)]
    {
      var fork = machine
      fork.resolved(round: fork.round, addresses: 0, at: .ms(0), bits: { bits })
      #expect(fork.state == .waiting(.ms(least)))
    }
  }

  @Test func `only a link that has worked ends an outage`() {
    var machine = LinkMachine.make()
    machine.start(at: .ms(0), bits: most)
    _ = pauses(&machine, 6, from: 0)
    machine.worked(0)
    #expect(machine.failures == 6, "word of no link")
    let first = machine.finishRound(up: true, at: 0)
    #expect(machine.failures == 6, "a greeting is not enough")
    machine.ended(first, .closedByPeer, at: .ms(0), bits: most)
    #expect(machine.failures == 7)
    #expect(machine.takeWait()?.cause == .unproven)
    #expect(machine.state == .waiting(.ms(36_000)))
    machine.elapsed(to: .ms(36_000), bits: most)
    let second = machine.finishRound(up: true, at: 36_000)
    machine.worked(first)
    #expect(machine.failures == 7, "word of an old link")
    machine.worked(second)
    #expect(machine.failures == 0)
    machine.ended(second, .closedByPeer, at: .ms(36_000), bits: most)
    #expect(machine.state == .waiting(.ms(37_000)))
  }

  @Test func `a round that began before the outage counts as its first try`() {
    var machine = LinkMachine.up()
    machine.pathChanged(at: .ms(0), bits: most)
    machine.ended(1, .closedByPeer, at: .ms(10), bits: most)
    #expect(machine.state == .connecting(.listed(0)) && machine.failures == 0)
    machine.finishRound(up: false, at: 20)
    #expect(machine.state == .waiting(.ms(1020)))
    machine.elapsed(to: .ms(1020), bits: most)
    #expect(pauses(&machine, 2, from: 1020) == [2000, 4000])
  }

  @Test(
    arguments: [
      (CloseReason.closedByPeer, 1000, .closed), (.heartbeatLost, 5000, .heartbeatLost),
      (.transport(104), 1000, .closed),
    ] as [(CloseReason, Int64, LinkWait.Cause)])
  func `the first window depends on how the link was lost`(
    reason: CloseReason, window: Int64, cause: LinkWait.Cause
  ) {
    for (bits, share) in [(UInt64.max, 2), (1 << 63, 1), (0, 0)] as [(UInt64, Int64)] {
      var machine = LinkMachine.up()
      machine.ended(1, reason, at: .ms(0), bits: { bits })
      #expect(machine.state == .waiting(.ms(window * share / 2)))
      let wait = machine.takeWait()
      #expect(wait?.window == window * 1_000_000 && wait?.cause == cause && wait?.failures == 0)
    }
  }

  @Test func `after a lost heartbeat the window does not shrink when the server refuses`() {
    var machine = LinkMachine.up()
    machine.ended(1, .heartbeatLost, at: .ms(0), bits: most)
    machine.elapsed(to: .ms(5000), bits: most)
    let drawn = pauses(&machine, 6, from: 5000)
    #expect(drawn == [6000, 6000, 6000, 8000, 16_000, 30_000])
  }

  @Test func `windows that are all alike draw once and keep the period`() {
    let reconnect = ReconnectPolicy.spread(over: .seconds(60))
    var machine = LinkMachine.make([0], reconnect)
    machine.start(at: .ms(0)) { 0 }
    machine.resolved(round: 1, addresses: 0, at: .ms(0)) { 0 }
    #expect(machine.state == .waiting(.ms(0)))
    machine.elapsed(to: .ms(0)) { 0 }
    machine.resolved(round: 2, addresses: 0, at: .ms(0)) { 0 }
    #expect(machine.state == .waiting(.ms(60_000)))
  }

  @Test func `what the server asks for overrides the policy, to the millisecond`() {
    for works in [true, false] {
      var machine = LinkMachine.up(works: works)
      machine.peerLeft(
        1, .goneAway(.draining), hint: 7_000_000_000, alternatives: 0, at: .ms(0), bits: { 0 })
      #expect(machine.state == .waiting(.ms(7000)))
      #expect(machine.takeWait()?.cause == .goaway)
    }
    // Nothing asked for is nothing granted: a server that drains at once is not run down.
    for works in [true, false] {
      var machine = LinkMachine.up(works: works)
      machine.peerLeft(1, .goneAway(.draining), hint: nil, alternatives: 0, at: .ms(0), bits: most)
      #expect(machine.failures == (works ? 0 : 1))
      #expect(machine.state == .waiting(.ms(1000)))
    }
    // A short time asked for by a server that never worked does not shorten the pause.
    var machine = LinkMachine.up(works: false)
    machine.peerLeft(1, .goneAway(.draining), hint: 1, alternatives: 0, at: .ms(0), bits: most)
    #expect(machine.state == .waiting(.ms(1000)))
  }

  @Test func `hints are cut to what the policy allows, and stay spread`() {
    let policy = ReconnectPolicy(longestHint: .seconds(300))
    func hint(_ retryAfter: UInt32, _ spread: UInt32, _ bits: UInt64 = .max) -> Int64? {
      policy.hint(retryAfter: retryAfter, spread: spread, bits: bits).map { $0 / 1_000_000 }
    }
    #expect(hint(0, 0) == nil)
    #expect(hint(5_000, 0) == 5_000)
    #expect(hint(5_000, 20_000) == 25_000 && hint(5_000, 20_000, 0) == 5_000)
    #expect(hint(.max, 0) == 300_000)
    #expect(hint(0, .max) == 300_000 && hint(0, .max, 0) == 0)
    #expect(hint(.max, .max) == 300_000 && hint(.max, .max, 0) == 0)
    #expect(hint(.max, 20_000) == 300_000 && hint(.max, 20_000, 0) == 280_000)
    #expect(ReconnectPolicy(longestHint: .zero).hint(retryAfter: 9, spread: 9, bits: .max) == 0)
    #expect(
      ReconnectPolicy(longestHint: .seconds(Int64.max)).hint(
        retryAfter: .max, spread: .max, bits: .max) == 2 * Int64(UInt32.max) * 1_000_000)
  }

  @Test func `the hint of a server that turns clients away counts too`() {
    var machine = LinkMachine.make()
    machine.start(at: .ms(0), bits: most)
    machine.resolved(round: 1, addresses: 1, at: .ms(0), bits: most)
    machine.turnedAway(1, hint: 9_000_000_000, alternatives: 0, at: .ms(0))
    machine.turnedAway(7, hint: 90_000_000_000, alternatives: 0, at: .ms(0))
    machine.failed(1, at: .ms(0), bits: most)
    #expect(machine.state == .waiting(.ms(9000)))
    // Once.
    machine.elapsed(to: .ms(9000), bits: most)
    machine.finishRound(up: false, at: 9000)
    #expect(machine.state == .waiting(.ms(11_000)))
  }
}

@Suite struct ReconnectPolicyTests {
  @Test func `pauses are even over the whole of the window`() {
    var dice = Seeded(42)
    let window: Int64 = 30_000_000_000
    var counts = [Int](repeating: 0, count: 20)
    let draws = 40_000
    for _ in 0..<draws {
      let pause = ReconnectPolicy.even(within: window, bits: dice.next())
      #expect((0...window).contains(pause))
      counts[min(19, Int(pause / (window / 20)))] += 1
    }
    // 2,000 each, with a standard deviation of 44.
    for count in counts { #expect((1800...2200).contains(count)) }
  }

  @Test func `the ends of the window are reached`() {
    for window in [1, 2, 1_000_000, Int64.max] {
      #expect(ReconnectPolicy.even(within: window, bits: .max) == window)
      #expect(ReconnectPolicy.even(within: window, bits: 0) == 0)
    }
    #expect(ReconnectPolicy.even(within: 0, bits: .max) == 0)
    #expect(ReconnectPolicy.even(within: -5, bits: .max) == 0)
    #expect(ReconnectPolicy.period(of: 1_000, bits: 0) == 1_000)
    #expect(ReconnectPolicy.period(of: 1_000, bits: .max) == 1_200)
    #expect(ReconnectPolicy.period(of: 0, bits: .max) == 0)
    #expect(ReconnectPolicy.period(of: .max, bits: .max) == .max)
  }

  @Test func `no number of failures overflows the window`() {
    let policy = ReconnectPolicy(afterRefused: .seconds(3), cap: .seconds(100))
    #expect(policy.window(first: 0, failures: 1) == 3_000_000_000)
    #expect(policy.window(first: 0, failures: 5) == 48_000_000_000)
    #expect(policy.window(first: 50_000_000_000, failures: 5) == 50_000_000_000)
    #expect(policy.window(first: 50_000_000_000, failures: 0) == 50_000_000_000)
    #expect(policy.window(first: .max, failures: 0) == 100_000_000_000)
    for failures in [7, 40, 63, 64, 65, 1000, Int.max] {
      #expect(policy.window(first: 0, failures: failures) == 100_000_000_000)
    }
    let huge = ReconnectPolicy(afterRefused: .seconds(Int64.max), cap: .seconds(Int64.max))
    #expect(huge.window(first: 0, failures: 3) == .max)
  }

  /// Clients that lost their server at once come back for as long as it is away, by a policy; the
  /// result is how many times the even rate the busiest second has after the first two windows.
  private func peak(_ pause: (Int, UInt64) -> Int64) -> Double {
    var dice = Seeded(7)
    let (clients, seconds) = (20_000, 300)
    var bins = [Int](repeating: 0, count: seconds)
    for _ in 0..<clients {
      var (time, round) = (Int64(0), 0)
      while true {
        time += pause(round, dice.next())
        round += 1
        let second = Int(time / 1_000_000_000)
        guard second < seconds else { break }
        bins[second] += 1
      }
    }
    let even = Double(clients) / 30
    return Double(bins[1...].max()!) / even
  }

  @Test func `a period keeps the even spread of the first draw, repeated even draws do not`() {
    let window: Int64 = 30_000_000_000
    let ours = peak { round, bits in
      round == 0
        ? ReconnectPolicy.even(within: window, bits: bits)
        : ReconnectPolicy.period(of: window, bits: bits)
    }
    let repeated = peak { _, bits in ReconnectPolicy.even(within: window, bits: bits) }
    #expect(ours < 1.2, "\(ours)")
    #expect(repeated > 1.9, "\(repeated)")
  }

  @Test func `instants and durations stay within their range`() {
    let last = LinkInstant(nanoseconds: .max)
    let first = LinkInstant(nanoseconds: .min)
    #expect(last + 1 == last && first + -1 == first)
    #expect(last - first == .max && first - last == .min)
    #expect(first.duration(to: last) == .nanoseconds(Int64.max))
    #expect(last.advanced(by: .seconds(Int64.max)) == last)
    #expect(Duration.seconds(Int64.min).clampedNanoseconds == .min)
    #expect(Duration.seconds(Int64.max).wireMilliseconds == .max)
    #expect(Duration.seconds(-1).wireMilliseconds == 0)
    #expect(Duration.nanoseconds(1).wireMilliseconds == 1)
    #expect(Duration.milliseconds(7).wireMilliseconds == 7)
  }
}
