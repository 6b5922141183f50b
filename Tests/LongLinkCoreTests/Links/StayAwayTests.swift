// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// How long servers ask to be left alone.
@Suite struct StayAwayTests {
  private let most = { UInt64.max }
  private let draining = CloseReason.goneAway(.draining)

  @Test func `a hint keeps a client away from the server that gave it, and from no other`() {
    var machine = LinkMachine.up([0, 1])
    machine.peerLeft(1, draining, hint: 20_000_000_000, alternatives: 0, at: .ms(0), bits: most)
    #expect(machine.takeWait()?.cause == .closed)
    #expect(machine.state == .waiting(.ms(1000)), "many clients may have been told the same")
    machine.elapsed(to: .ms(1000), bits: most)
    #expect(machine.target == .listed(1))
    // The other one fails, again and again: only when its time has come is the first one asked.
    var tried: [LinkMachine.Target: Int64] = [:]
    while tried[.listed(0)] == nil {
      let now = (machine.deadline - .start) / 1_000_000
      machine.elapsed(to: machine.deadline, bits: most)
      if case .connecting = machine.state { tried[machine.target] = now }
      machine.finishRound(up: false, at: now)
    }
    #expect(tried[.listed(0)]! >= 20_000 && tried[.listed(1)]! > 5_000, "\(tried)")
  }

  @Test func `a client waits until the first of its servers may be asked`() {
    var machine = LinkMachine.up([0, 1])
    machine.peerLeft(1, draining, hint: 20_000_000_000, alternatives: 0, at: .ms(0), bits: most)
    machine.elapsed(to: .ms(1000), bits: most)
    machine.resolved(round: 2, addresses: 1, at: .ms(1000), bits: most)
    _ = machine.take()
    machine.turnedAway(2, hint: 7_000_000_000, alternatives: 0, at: .ms(1500))
    machine.failed(2, at: .ms(1600), bits: most)
    #expect(machine.state == .waiting(.ms(8500)))
    #expect(machine.takeWait()?.cause == .goaway)
    machine.elapsed(to: .ms(8500), bits: most)
    #expect(machine.target == .listed(1))
    // One that works is asked again whatever it said before.
    let third = machine.finishRound(up: true, at: 8500)
    machine.worked(third)
    machine.ended(third, .closedByPeer, at: .ms(8600), bits: most)
    #expect(machine.state == .waiting(.ms(9600)))
  }

  @Test func `a window whose delay gave way to a hint is still new`() {
    for (bits, delay) in [(0, 0), (UInt64.max, 1_000)] as [(UInt64, Int64)] {
      var machine = LinkMachine.up([0])
      machine.peerLeft(1, draining, hint: 20_000_000_000, alternatives: 0, at: .ms(0), bits: most)
      machine.ended(1, .closedHere, at: .ms(0), bits: most)
      machine.elapsed(to: .ms(20_000), bits: most)
      machine.resolved(round: machine.round, addresses: 0, at: .ms(20_000), bits: { bits })
      #expect(machine.state == .waiting(.ms(20_000 + delay)))
    }
  }

  @Test func `the hint of an alternative keeps nobody away from the list`() {
    var machine = LinkMachine.up([0])
    machine.peerLeft(1, draining, hint: nil, alternatives: 1, at: .ms(0), bits: most)
    let second = machine.finishRound(up: true, at: 0)
    machine.worked(second)
    machine.peerLeft(
      second, draining, hint: 90_000_000_000, alternatives: 0, at: .ms(10), bits: most)
    #expect(machine.state == .waiting(.ms(1010)))
    machine.elapsed(to: .ms(1010), bits: most)
    #expect(machine.target == .listed(0))
  }

  @Test func `neither another network nor a suspension cuts short what a server asks for`() {
    var machine = LinkMachine.up([0])
    machine.peerLeft(1, draining, hint: 20_000_000_000, alternatives: 0, at: .ms(0), bits: most)
    machine.ended(1, .closedHere, at: .ms(0), bits: most)
    machine.pathChanged(at: .ms(5_000), bits: most)
    #expect(machine.state == .waiting(.ms(20_000)))
    #expect(machine.takeWait()?.cause == .goaway)
    machine.suspend(lingering: 0, at: .ms(6_000))
    machine.resume(at: .ms(7_000), bits: most)
    #expect(machine.state == .waiting(.ms(20_000)))
    var fork = machine
    machine.elapsed(to: .ms(20_000), bits: most)
    #expect(machine.state == .connecting(.listed(0)))
    fork.suspend(lingering: 0, at: .ms(8_000))
    fork.resume(at: .ms(20_000), bits: most)
    #expect(fork.state == .connecting(.listed(0)))
  }

  @Test func `another network ends the pause that is longer than what a server asks for`() {
    var machine = LinkMachine.make()
    machine.start(at: .ms(0), bits: most)
    machine.resolved(round: 1, addresses: 1, at: .ms(0), bits: most)
    machine.turnedAway(1, hint: 500_000_000, alternatives: 0, at: .ms(0))
    machine.failed(1, at: .ms(0), bits: most)
    #expect(machine.state == .waiting(.ms(1000)))
    machine.pathChanged(at: .ms(499), bits: most)
    #expect(machine.state == .waiting(.ms(500)))
    machine.pathChanged(at: .ms(500), bits: most)
    #expect(machine.state == .connecting(.listed(0)))
  }

  @Test func `another network sends nobody from a named server to one that wants to be left`() {
    var machine = LinkMachine.up([0])
    machine.peerLeft(1, draining, hint: 20_000_000_000, alternatives: 1, at: .ms(0), bits: most)
    machine.elapsed(to: .ms(1_000), bits: most)
    let second = machine.finishRound(up: true, at: 1_000)
    machine.ended(1, .closedHere, at: .ms(1_000), bits: most)
    machine.pathChanged(at: .ms(19_999), bits: most)
    #expect(machine.take() == [.probe(second)] && machine.state == .connected(second))
    machine.pathChanged(at: .ms(20_000), bits: most)
    #expect(machine.take().first == .probe(second))
    #expect(machine.state == .migrating(second, to: .listed(0)))
  }

  @Test func `a server that is left over in the list is not asked too soon`() {
    // Both ask to be left alone, for 10 s and for 300 s.
    var machine = LinkMachine.up([0, 1])
    machine.peerLeft(1, draining, hint: 10_000_000_000, alternatives: 0, at: .ms(0), bits: { 0 })
    machine.elapsed(to: .ms(0), bits: most)
    machine.resolved(round: 2, addresses: 1, at: .ms(0), bits: most)
    machine.turnedAway(2, hint: 300_000_000_000, alternatives: 0, at: .ms(0))
    machine.failed(2, at: .ms(0), bits: most)
    #expect(machine.state == .waiting(.ms(10_000)))
    let entry = [ServerList.Entry(priority: 0, weight: 1)]
    var fork = machine
    machine.switchServers(to: entry, kept: [1], at: .ms(1), bits: most)
    machine.elapsed(to: .ms(10_000), bits: most)
    #expect(machine.state == .waiting(.ms(300_000)))
    // So too when the server that there is a link to is taken out of the list.
    fork.elapsed(to: .ms(10_000), bits: most)
    fork.finishRound(up: true, at: 10_000)
    fork.switchServers(to: entry, kept: [1], at: .ms(10_001), bits: most)
    #expect(fork.state == .waiting(.ms(300_000)))
  }
}
