// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkCore

/// When the machines let the next credential be shown on the link, and what follows from answers.
@Suite struct InPlaceRenewalTests {
  private let most = { UInt64.max }

  /// A machine whose link, number 1, has a credential that is valid for so long.
  private func up(
    for milliseconds: Int64, bits: () -> UInt64 = { 0 }
  ) -> LinkMachine {
    var machine = LinkMachine.make()
    machine.start(at: .ms(0), bits: bits)
    machine.resolved(round: machine.round, addresses: 1, at: .ms(0), bits: bits)
    machine.established(
      1, provenAfter: 30_000_000_000, validFor: milliseconds * 1_000_000, renewsInPlace: true,
      at: .ms(0), bits: bits)
    machine.worked(1)
    _ = machine.take()
    return machine
  }

  @Test func `renewals of links that came together are spread over 15 percent of the time`() {
    var generator = Seeded(7)
    var counts: [Int64: Int] = [:]
    var links = (0..<10_000).map { _ in up(for: 3_600_000, bits: { generator.next() }) }
    // The second renewals too, which all follow from the first at the same instant.
    for _ in 0..<2 {
      counts = [:]
      for index in links.indices {
        let due = (links[index].deadline - .start) / 1_000_000
        counts[due / 36_000, default: 0] += 1
        links[index].elapsed(to: .ms(due), bits: { generator.next() })
        #expect(links[index].take() == [.renew(1)])
        links[index].renewed(
          1, validFor: 3_600_000_000_000, at: .ms(0), bits: { generator.next() })
      }
      // Percents from 75 to 90: none without its share, and none with twice as much.
      #expect(counts.keys.min() == 75 && counts.keys.max() == 90)
      for percent: Int64 in 75..<90 {
        #expect((450...900).contains(counts[percent] ?? 0), "\(percent): \(counts)")
      }
    }
  }

  @Test func `one renewal is under way at a time, and the next follows from its answer`() {
    var machine = up(for: 100_000)
    machine.elapsed(to: .ms(75_000), bits: most)
    #expect(machine.take() == [.renew(1)])
    machine.elapsed(to: .ms(99_000), bits: most)
    #expect(machine.take() == [] && machine.state == .connected(1))
    machine.renewed(1, validFor: 40_000_000_000, at: .ms(99_000), bits: { 0 })
    #expect(machine.deadline == .ms(129_000))
    machine.elapsed(to: .ms(129_000), bits: most)
    #expect(machine.take() == [.renew(1)])
    machine.renewed(1, validFor: nil, at: .ms(130_000), bits: most)
    #expect(machine.deadline == .distantFuture && machine.round == 1)
  }

  @Test func `after none, another follows in a quarter of the time, and at least a second`() {
    var machine = up(for: 100_000)
    var times: [Int64] = []
    while machine.deadline != .distantFuture {
      let now = machine.deadline
      machine.elapsed(to: now, bits: most)
      guard machine.take() == [.renew(1)] else { break }
      times.append((now - .start) / 1_000_000)
      machine.notRenewed(1, again: true, at: now)
    }
    #expect(times.prefix(4) == [75_000, 81_250, 85_937, 89_453])
    #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 >= 1_000 }, "\(times)")
    #expect((98_000..<100_000).contains(times.last!) && times.count < 15, "\(times)")
    #expect(machine.state == .connected(1) && machine.round == 1)
  }

  @Test func `a credential that needs another link gets one`() {
    var machine = up(for: 100_000)
    machine.elapsed(to: .ms(75_000), bits: most)
    _ = machine.take()
    machine.cannotRenew(1, at: .ms(75_500), bits: most)
    #expect(machine.take() == [.resolve(.listed(0), round: 2)])
    #expect(machine.state == .migrating(1, to: .listed(0)))
  }

  @Test func `what comes of a link that is not current any more changes nothing`() {
    var machine = up(for: 100_000)
    machine.elapsed(to: .ms(75_000), bits: most)
    machine.peerLeft(
      1, .goneAway(.draining), hint: nil, alternatives: 0, at: .ms(75_000), bits: most)
    _ = machine.take()
    let before = machine
    machine.renewed(1, validFor: 5_000_000_000, at: .ms(75_001), bits: most)
    machine.notRenewed(1, again: true, at: .ms(75_001))
    machine.cannotRenew(1, at: .ms(75_001), bits: most)
    #expect(machine == before)
  }

  // MARK: Refusals

  /// A client whose link renews its credential, which is valid for 100 s.
  private func client() -> ClientMachine {
    var machine = ClientMachine.make(ways: 0)
    machine.handle(.wanted(again: false), at: .ms(0), bits: { 0 })
    machine.handle(.long(.resolved(round: 1, addresses: 1)), at: .ms(0), bits: { 0 })
    let terms: ClientMachine.Terms = (
      proof: 30_000_000_000, validity: 100_000_000_000, renewsInPlace: true
    )
    machine.handle(.long(.established(1, terms)), at: .ms(0), bits: { 0 })
    machine.handle(.long(.worked(1)), at: .ms(0), bits: { 0 })
    while machine.nextEffect() != nil {}
    return machine
  }

  /// Lets the credential be shown and refused; whether there was a renewal.
  private func refuse(
    _ credential: [UInt8], _ code: ResponseCode = .unauthenticated,
    on machine: inout ClientMachine
  ) -> Bool {
    let now = machine.deadline
    machine.handle(.elapsed, at: now, bits: { 0 })
    var renews = false
    while let effect = machine.nextEffect() { renews = renews || effect == .long(.renew(1)) }
    guard renews else { return false }
    machine.handle(.long(.notRenewed(1, refusal: (credential, code))), at: now, bits: { 0 })
    return true
  }

  @Test(arguments: [false, true])
  func `the same credential refused twice ends the asking, and the client with its link`(
    endsWithGoaway: Bool
  ) {
    var machine = client()
    #expect(refuse([1], on: &machine) && refuse([1], on: &machine))
    #expect(machine.state == .connected(1) && machine.deadline == .distantFuture)
    let expired = CloseReason.goneAway(.unauthenticated)
    if endsWithGoaway {
      machine.handle(
        .long(.peerLeft(1, .unauthenticated, (nil, 0))), at: .ms(100_000), bits: { 0 })
    } else {
      machine.handle(
        .long(.ended(1, expired, (hasAnswered: true, hasRequests: true, life: 1))),
        at: .ms(100_000), bits: { 0 })
    }
    #expect(machine.state == .notAccepted(.unauthenticated) && machine.isGivenUp)
    // Asked again, it tries again.
    machine.handle(.asked, at: .ms(200_000), bits: { 0 })
    machine.handle(.wanted(again: true), at: .ms(200_000), bits: { 0 })
    #expect(machine.state == .connecting(.listed(0)))
  }

  @Test func `others, and one that is accepted between, do not`() {
    var machine = client()
    for credential: UInt8 in 0..<5 { #expect(refuse([credential], on: &machine)) }
    machine.handle(.elapsed, at: machine.deadline, bits: { 0 })
    while machine.nextEffect() != nil {}
    machine.handle(
      .long(.renewed(1, validity: 100_000_000_000)), at: .ms(95_000), bits: { 0 })
    #expect(refuse([4], on: &machine) && refuse([5], on: &machine))
    #expect(machine.deadline != .distantFuture)
  }

  @Test func `with 403 any two do`() {
    var machine = client()
    #expect(refuse([1], .forbidden, on: &machine) && refuse([2], .forbidden, on: &machine))
    #expect(machine.deadline == .distantFuture && machine.refusals.finalCode == .forbidden)
  }
}
