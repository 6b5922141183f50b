// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// One round after the other at one server.
@Suite struct LinkMachineTests {
  /// The largest pause there is, whatever the window.
  private let most = { UInt64.max }
  private let life: Int64 = 30_000_000_000

  @Test func `one round from the first request to the link`() {
    var machine = LinkMachine.make()
    #expect(machine.take() == [] && machine.state == .idle)
    machine.start(at: .ms(0), bits: most)
    machine.start(at: .ms(0), bits: most)
    #expect(machine.take() == [.resolve(.listed(0), round: 1)])
    #expect(machine.state == .connecting(.listed(0)))
    machine.resolved(round: 1, addresses: 1, at: .ms(0), bits: most)
    #expect(machine.take() == [.connect(1, address: 0)])
    #expect(machine.deadline == .ms(1000))
    machine.established(1, provenAfter: life, at: .ms(5), bits: most)
    machine.established(1, provenAfter: life, at: .ms(6), bits: most)
    #expect(machine.take() == [.use(1)])
    #expect(machine.state == .connected(1))
    #expect(machine.deadline == .ms(30_005))
  }

  @Test func `a link works when it has answered, or lived for an interval and been heard`() {
    for answers in [true, false] {
      var machine = LinkMachine.up(works: false)
      machine.heard(1)
      #expect(machine.wantsOutcomes == true)
      machine.elapsed(to: .ms(29_999), bits: most)
      #expect(machine.take() == [])
      if answers { machine.worked(1) } else { machine.elapsed(to: .ms(30_000), bits: most) }
      #expect(machine.take() == [.proven(1)])
      #expect(!machine.wantsOutcomes && machine.deadline == .distantFuture)
      machine.worked(1)
      machine.elapsed(to: .ms(90_000), bits: most)
      #expect(machine.take() == [])
    }
  }

  @Test func `a link that is silent after its welcome is not proven by time`() {
    var machine = LinkMachine.up(works: false)
    machine.elapsed(to: .ms(30_000), bits: most)
    #expect(machine.take() == [] && machine.deadline == .distantFuture)
    var dead = machine
    dead.ended(1, .heartbeatLost, at: .ms(40_000), bits: most)
    #expect(dead.failures == 1 && dead.takeWait()?.cause == .unproven)
    machine.heard(0)
    #expect(machine.take() == [], "word of no link")
    machine.heard(1)
    #expect(machine.take() == [.proven(1)])
    machine.ended(1, .heartbeatLost, at: .ms(80_000), bits: most)
    #expect(machine.failures == 0 && machine.takeWait()?.cause == .heartbeatLost)
  }

  @Test func `addresses race, a quarter of a second apart, and the first link wins`() {
    var machine = LinkMachine.make()
    machine.start(at: .ms(0), bits: most)
    machine.resolved(round: 1, addresses: 4, at: .ms(0), bits: most)
    #expect(machine.deadline == .ms(250))
    machine.elapsed(to: .ms(249), bits: most)
    _ = machine.take()
    machine.elapsed(to: .ms(250), bits: most)
    #expect(machine.take() == [.connect(2, address: 1)])
    // A failure does not wait for the next one's turn.
    machine.failed(1, at: .ms(300), bits: most)
    #expect(machine.take() == [.connect(3, address: 2)])
    machine.elapsed(to: .ms(549), bits: most)
    #expect(machine.take() == [])
    machine.elapsed(to: .ms(550), bits: most)
    #expect(machine.take() == [.connect(4, address: 3)])
    machine.established(3, provenAfter: life, at: .ms(560), bits: most)
    #expect(machine.take() == [.abandon(2, .left), .abandon(4, .left), .use(3)])
    // Those that lost come too late, or fail unheard.
    machine.established(4, provenAfter: life, at: .ms(561), bits: most)
    machine.failed(2, at: .ms(600), bits: most)
    machine.ended(2, .closedByPeer, at: .ms(600), bits: most)
    #expect(machine.take() == [.abandon(4, .left)])
    #expect(machine.state == .connected(3))
  }

  @Test func `an attempt that takes too long is given up`() {
    var machine = LinkMachine.make()
    machine.start(at: .ms(0), bits: most)
    machine.resolved(round: 1, addresses: 1, at: .ms(0), bits: most)
    machine.elapsed(to: .ms(999), bits: most)
    _ = machine.take()
    machine.elapsed(to: .ms(1000), bits: most)
    #expect(machine.take() == [.abandon(1, .handshakeTimeout), .roundFailed(.listed(0))])
    #expect(machine.state == .waiting(.ms(2000)))
  }

  @Test func `a name that is looked up for too long is a failure, and its late answer nothing`() {
    var machine = LinkMachine.make()
    machine.start(at: .ms(0), bits: most)
    #expect(machine.deadline == .ms(1000))
    machine.elapsed(to: .ms(1000), bits: most)
    #expect(machine.take().last == .roundFailed(.listed(0)))
    machine.resolved(round: 1, addresses: 2, at: .ms(1500), bits: most)
    #expect(machine.take() == [])
    #expect(machine.state == .waiting(.ms(2000)))
    machine.elapsed(to: .ms(2000), bits: most)
    machine.resolved(round: 1, addresses: 2, at: .ms(2001), bits: most)
    #expect(machine.take() == [.resolve(.listed(0), round: 2)])
  }

  @Test func `after a link that its owner holds fails, the other addresses wait for a new round`() {
    var machine = LinkMachine.make()
    machine.start(at: .ms(0), bits: most)
    machine.resolved(round: 1, addresses: 2, at: .ms(0), bits: most)
    machine.hold(1)
    #expect(machine.take().last == .connect(1, address: 0))
    machine.heldLeft(1, at: .ms(9_000), bits: most)
    #expect(machine.take() == [.retire(1), .roundFailed(.listed(0))])
    #expect(machine.state == .waiting(.ms(10_000)))
  }

  @Test func `closing ends everything, and what was not begun never begins`() {
    var machine = LinkMachine.make()
    machine.start(at: .ms(0), bits: most)
    machine.resolved(round: 1, addresses: 3, at: .ms(0), bits: most)
    machine.elapsed(to: .ms(250), bits: most)
    machine.close(at: .ms(250))
    machine.close(at: .ms(250))
    #expect(machine.take() == [.abandon(1, .left), .abandon(2, .left)])
    machine.start(at: .ms(300), bits: most)
    machine.resolved(round: 1, addresses: 3, at: .ms(300), bits: most)
    machine.elapsed(to: .ms(90_000), bits: most)
    machine.failed(1, at: .ms(300), bits: most)
    machine.pathChanged(at: .ms(300), bits: most)
    machine.suspend(lingering: 0, at: .ms(300))
    machine.resume(at: .ms(300), bits: most)
    #expect(machine.take() == [])
    machine.established(2, provenAfter: life, at: .ms(300), bits: most)
    #expect(machine.take() == [.abandon(2, .left)])
    #expect(machine.state == .closed && machine.deadline == .distantFuture)
  }
}
