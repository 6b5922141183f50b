// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkCore

/// Links that the application prepares before they are used.
extension ClientMachineTests {
  @Test func `a link is used once it is prepared, in the time of its connect`() {
    var machine = ClientMachine.make(ways: 0, prepares: true)
    play(
      Self.first + [
        (
          .long(.established(1, Self.terms)), [.long(.prepare(1))], .connecting(.listed(0))
        ),
        (.long(.prepared(1, Self.terms)), [.long(.use(1))], .connected(1)),
      ], on: &machine)
    var late = ClientMachine.make(ways: 0, prepares: true)
    play(
      Self.first + [
        (.long(.established(1, Self.terms)), [.long(.prepare(1))], .connecting(.listed(0)))
      ], on: &late)
    // From the start of the attempt, not from the end of its handshake.
    #expect(late.deadline == .ms(10_001))
    late.handle(.elapsed, at: .ms(10_001), bits: { 0 })
    #expect(
      late.take() == [.long(.abandon(1, .handshakeTimeout)), .long(.roundFailed(.listed(0)))])
    // It has returned too late.
    late.handle(.long(.prepared(1, Self.terms)), at: .ms(10_002), bits: { 0 })
    #expect(late.take() == [] && !late.link.isCurrent(1))
  }

  private static let preparing: [(Fact, [Effect], ClientMachine.State)] =
    first + [(.long(.established(1, terms)), [.long(.prepare(1))], .connecting(.listed(0)))]

  @Test func `a change of the network tests a link that is being prepared, and keeps it`() {
    var machine = ClientMachine.make(ways: 0, prepares: true)
    play(
      Self.preparing + [
        (.pathChanged, [.long(.probe(1))], .connecting(.listed(0))),
        (.pathChanged, [.long(.probe(1))], .connecting(.listed(0))),
        (
          .long(.prepared(1, Self.terms)),
          [.long(.use(1)), .long(.resolve(.listed(0), round: 2))], .migrating(1, to: .listed(0))
        ),
        (
          .long(.resolved(round: 2, addresses: 1)), [.long(.connect(2, address: 0))],
          .migrating(1, to: .listed(0))
        ),
        (.long(.established(2, Self.terms)), [.long(.prepare(2))], .migrating(1, to: .listed(0))),
        (.pathChanged, [.long(.probe(1)), .long(.probe(2))], .migrating(1, to: .listed(0))),
        // The round goes on over the new path.
        (
          .long(.failed(2, .heartbeatLost)), [.long(.resolve(.listed(0), round: 3))],
          .migrating(1, to: .listed(0))
        ),
      ], on: &machine)
    var dead = ClientMachine.make(ways: 0, prepares: true)
    play(
      Self.preparing + [
        (.pathChanged, [.long(.probe(1))], .connecting(.listed(0))),
        (
          .long(.failed(1, .heartbeatLost)), [.long(.resolve(.listed(0), round: 2))],
          .connecting(.listed(0))
        ),
      ], on: &dead)
    #expect(dead.link.failures == 0)
  }

  @Test func `an answer while a link is prepared proves it once it is used`() {
    var machine = ClientMachine.make(ways: 0, prepares: true)
    play(Self.preparing, on: &machine)
    let wantsOutcomes = machine.wantsOutcomes
    #expect(wantsOutcomes)
    play(
      [
        (.long(.worked(1)), [], .connecting(.listed(0))),
        (.long(.prepared(1, Self.terms)), [.long(.use(1)), .long(.proven(1))], .connected(1)),
      ], on: &machine, from: 10)
    let wantsMore = machine.wantsOutcomes
    #expect(!wantsMore)
    var failed = ClientMachine.make(ways: 0, prepares: true)
    play(Self.preparing, on: &failed)
    failed.handle(.long(.worked(1)), at: .ms(10), bits: { .max })
    failed.handle(.long(.notPrepared(1)), at: .ms(10), bits: { .max })
    #expect(failed.take() == [.long(.roundFailed(.listed(0)))])
    #expect(failed.link.failures == 1)
  }

  @Test func `a link that was not prepared lingers until it ends`() {
    for ends in [true, false] {
      var machine = ClientMachine.make(ways: 0, prepares: true)
      play(Self.preparing, on: &machine)
      machine.handle(.long(.notPrepared(1)), at: .ms(10), bits: { .max })
      if ends { machine.handle(.long(.failed(1, .left)), at: .ms(11), bits: { .max }) }
      machine.handle(.suspended(lingering: 5_000_000), at: .ms(12), bits: { .max })
      _ = machine.take()
      machine.handle(.elapsed, at: .ms(17), bits: { .max })
      #expect(machine.take() == (ends ? [] : [.long(.expire(1))]))
    }
  }

  @Test func `a link that is not needed in its trial lingers, and stands none any more`() {
    var machine = tried()
    machine.handle(.serversSwitched([.init(priority: 0, weight: 1)], kept: [nil]), at: .ms(10)) {
      0
    }
    #expect(machine.take(wanting: 0).contains(.long(.abandon(2, .left))))
    #expect(!machine.ways.isTrying)
    machine.handle(.suspended(lingering: 5_000_000), at: .ms(12), bits: { 0 })
    _ = machine.take()
    machine.handle(.elapsed, at: .ms(17), bits: { 0 })
    #expect(machine.take().contains(.long(.expire(2))))
  }

  @Test func `a link that has lost the race lingers, and stands no trial`() {
    var machine = connected()
    for (time, fact) in [
      (10, .long(.ended(1, .heartbeatLost, Self.record(answered: false)))),
      (10, .elapsed), (10, .long(.resolved(round: 2, addresses: 2))), (260, .elapsed),
      (300, .long(.established(2, Self.terms))),
    ] as [(Int64, Fact)] {
      machine.handle(fact, at: .ms(time), bits: { 0 })
    }
    #expect(machine.take().contains(.long(.abandon(3, .left))) && machine.ways.isTrying(2))
    machine.handle(.long(.established(3, Self.terms)), at: .ms(301), bits: { 0 })
    #expect(machine.take() == [.long(.abandon(3, .left))] && machine.ways.isTrying(2))
    machine.handle(.suspended(lingering: 5_000_000), at: .ms(302), bits: { 0 })
    _ = machine.take()
    machine.handle(.elapsed, at: .ms(307), bits: { 0 })
    #expect(machine.take() == [.long(.expire(3)), .long(.expire(2))])
  }

  @Test func `a link that has stood its trial has the whole time`() {
    var machine = tried(prepares: true)
    play(
      [
        (.elapsed, [.short(.ping(2))], .short(way: 0)),
        (.long(.ponged(2)), [.short(.passed(2))], .short(way: 0)),
        (.long(.accepted(2, Self.terms)), [.long(.prepare(2))], .short(way: 0)),
      ], on: &machine, waiting: 0, from: 20_000)
    #expect(machine.link.deadline == .ms(30_002))
  }
}
