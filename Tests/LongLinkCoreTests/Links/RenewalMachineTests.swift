// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// Links whose credentials expire, and rounds for which there is none.
@Suite struct RenewalMachineTests {
  private let most = { UInt64.max }
  private let life: Int64 = 30_000_000_000
  private let expired = CloseReason.goneAway(.unauthenticated)

  /// A machine whose link, number 1, is up with a credential that is valid for so long, and has
  /// perhaps worked.
  private func up(
    _ priorities: [Int] = [0], for milliseconds: Int64, works: Bool = true,
    bits: () -> UInt64 = { .max }, change: (inout ReconnectPolicy) -> Void = { _ in }
  ) -> LinkMachine {
    var machine = LinkMachine.make(priorities, change: change)
    machine.start(at: .ms(0), bits: bits)
    establish(&machine, for: milliseconds, at: 0, bits: bits)
    if works { machine.worked(1) }
    _ = machine.take()
    return machine
  }

  /// Ends the round that has begun with a link, whose number is returned.
  @discardableResult
  private func establish(
    _ machine: inout LinkMachine, for validity: Int64?, at time: Int64,
    bits: () -> UInt64 = { .max }
  ) -> LinkMachine.AttemptID {
    machine.resolved(round: machine.round, addresses: 1, at: .ms(time), bits: bits)
    guard case .connect(let attempt, _)? = machine.take().last else {
      Issue.record("no attempt")
      return 0
    }
    machine.established(
      attempt, provenAfter: life, validFor: validity.map { $0 * 1_000_000 }, at: .ms(time),
      bits: bits)
    _ = machine.take()
    return attempt
  }

  private func milliseconds(_ instant: LinkInstant) -> Int64 { (instant - .start) / 1_000_000 }

  // MARK: When

  @Test func `a link is renewed after 75 to 90 percent of its validity`() {
    var seen: Set<Int64> = []
    for bits: UInt64 in 0..<302 {
      let machine = up(for: 100_000, bits: { bits })
      #expect(machine.deadline == .ms(75_000 + Int64(bits % 151) * 100))
      seen.insert(milliseconds(machine.deadline))
    }
    #expect(seen.min() == 75_000 && seen.max() == 90_000 && seen.count == 151)
    // The longest there is does not overflow.
    #expect(milliseconds(up(for: Int64(UInt32.max), bits: { 150 }).deadline) == 3_865_470_565)
  }

  @Test(arguments: [(1_000, nil), (1_001, 1_000), (1_200, 1_000), (1_400, 1_050)])
  func `but never sooner than after a second`(_ validity: Int64, _ renewal: Int64?) {
    var machine = up(for: validity, bits: { 0 })
    machine.elapsed(to: .ms((renewal ?? validity) - 1), bits: most)
    #expect(machine.take() == [])
    machine.elapsed(to: .ms(renewal ?? validity), bits: most)
    // One that lasts no longer than a second just expires.
    #expect(machine.take() == (renewal == nil ? [] : [.resolve(.listed(0), round: 2)]))
  }

  @Test func `a failed renewal is followed by another in a quarter of the time that is left`() {
    var machine = up(for: 100_000, bits: { 0 })
    var times: [Int64] = []
    for _ in 0..<100 where machine.deadline != .distantFuture {
      let now = machine.deadline
      machine.elapsed(to: now, bits: most)
      guard machine.take() == [.resolve(.listed(0), round: machine.round)] else { break }
      times.append(milliseconds(now))
      machine.resolved(round: machine.round, addresses: 0, at: now, bits: most)
      _ = machine.take()
    }
    #expect(times.prefix(4) == [75_000, 81_250, 85_937, 89_453])
    #expect(times.last! < 100_000 && times.last! >= 99_800, "\(times)")
    #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 >= 100 }, "\(times)")
    #expect(times.count < 30 && machine.state == .connected(1))
  }

  @Test func `a renewal that takes long is not begun twice`() {
    var machine = up(for: 10_000, bits: { 0 })
    machine.elapsed(to: .ms(7_500), bits: most)
    machine.resolved(round: 2, addresses: 1, at: .ms(7_500), bits: most)
    #expect(machine.take() == [.resolve(.listed(0), round: 2), .connect(2, address: 0)])
    machine.elapsed(to: .ms(8_200), bits: most)
    #expect(machine.take() == [] && machine.round == 2)
  }

  // MARK: Expiry

  @Test func `a link that expired before it had worked is followed by delays that grow`() {
    var machine = up(for: 300, works: false)
    var now: Int64 = 0
    var windows: [Int64] = []
    for link: UInt32 in 1...7 {
      now += 300
      machine.ended(link, expired, at: .ms(now), bits: most)
      windows.append((machine.takeWait()?.window ?? 0) / 1_000_000)
      now = milliseconds(machine.deadline)
      machine.elapsed(to: .ms(now), bits: most)
      establish(&machine, for: 300, at: now)
    }
    #expect(windows == [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
  }

  @Test func `one that had worked is followed at once, eight times in a row`() {
    var machine = up(for: 300)
    var now: Int64 = 0
    var pauses: [Int64] = []
    for link: UInt32 in 1...12 {
      now += 300
      machine.worked(link)
      machine.ended(link, expired, at: .ms(now), bits: most)
      let begin = now
      if case .waiting(let until) = machine.state {
        now = milliseconds(until)
        machine.elapsed(to: until, bits: most)
      }
      pauses.append(now - begin)
      establish(&machine, for: 300, at: now)
    }
    #expect(pauses == Array(repeating: 0, count: 8) + [1_000, 2_000, 4_000, 8_000])
  }

  @Test(arguments: [8, 9])
  func `a renewal that comes too late goes on, unless it does again and again`(_ times: Int) {
    var machine = up(for: 1_100)
    var now: Int64 = 0
    for time in 1...times {
      let link = LinkMachine.AttemptID(time)
      machine.worked(link)
      now += 1_000
      machine.elapsed(to: .ms(now), bits: most)
      #expect(machine.take().last == .resolve(.listed(0), round: machine.round))
      machine.ended(link, expired, at: .ms(now + 100), bits: most)
      guard time == times else {
        now += 200
        establish(&machine, for: 1_100, at: now)
        continue
      }
      if times <= 8 {
        #expect(machine.state == .connecting(.listed(0)))
      } else {
        #expect(machine.state == .waiting(.ms(now + 1_100)))
      }
    }
  }

  @Test func `expiries between which links were renewed for a minute are not in a row`() {
    var machine = up(for: 10_000)
    var link: LinkMachine.AttemptID = 1
    var now: Int64 = 0
    for _ in 0..<20 {
      for _ in 0..<7 {
        now += 9_000
        machine.elapsed(to: .ms(now), bits: most)
        link = establish(&machine, for: 10_000, at: now)
        machine.worked(link)
      }
      machine.ended(link, expired, at: .ms(now), bits: most)
      #expect(machine.state == .connecting(.listed(0)))
      link = establish(&machine, for: 10_000, at: now)
      machine.worked(link)
    }
  }

  // MARK: Which server

  @Test func `a server that refuses a renewal is asked again, and does not cool down`() {
    var machine = up([0, 1], for: 100_000, bits: { 0 })
    for _ in 0..<5 {
      machine.elapsed(to: machine.deadline, bits: most)
      machine.resolved(round: machine.round, addresses: 1, at: .ms(75_000), bits: most)
      guard case .connect(let attempt, _)? = machine.take().last else { break }
      machine.turnedAway(attempt, isRefusal: true, hint: nil, alternatives: 0, at: .ms(75_000))
      machine.failed(attempt, at: .ms(75_000), bits: most)
      #expect(machine.take() == [.roundFailed(.listed(0))])
    }
    #expect(machine.round == 6 && machine.counts.coolDowns == 0)
  }

  @Test func `a server that only fails to answer one cools down, and the next is asked`() {
    var machine = up([0, 1], for: 100_000, bits: { 0 })
    machine.elapsed(to: .ms(75_000), bits: most)
    machine.finishRound(up: false, at: 75_000)
    #expect(machine.counts.coolDowns == 1)
    machine.elapsed(to: .ms(79_000), bits: most)
    machine.elapsed(to: .ms(81_250), bits: most)
    #expect(machine.take() == [.resolve(.listed(0), round: 3)], "it has cooled down by then")
    machine.finishRound(up: false, at: 81_250)
    machine.elapsed(to: .ms(85_938), bits: most)
    #expect(machine.take() == [.resolve(.listed(1), round: 4)])
  }

  @Test func `no renewal goes to a server that asks clients to stay away`() {
    var machine = up(for: 100_000, bits: { 0 })
    machine.elapsed(to: .ms(75_000), bits: most)
    machine.resolved(round: 2, addresses: 1, at: .ms(75_000), bits: most)
    machine.turnedAway(2, hint: 20_000_000_000, alternatives: 0, at: .ms(75_000))
    machine.failed(2, at: .ms(75_000), bits: most)
    _ = machine.take()
    for time: Int64 in stride(from: 75_000, to: 95_000, by: 100) {
      machine.elapsed(to: .ms(time), bits: most)
      #expect(machine.take() == [])
    }
    machine.elapsed(to: .ms(97_000), bits: most)
    #expect(machine.take() == [.resolve(.listed(0), round: 3)])
  }

  @Test(arguments: [true, false])
  func `a link to an alternative is renewed there while its servers ask to stay away`(
    _ areAway: Bool
  ) {
    var machine = LinkMachine.up()
    let hint: Int64? = areAway ? 200_000_000_000 : nil
    machine.peerLeft(
      1, .goneAway(.draining), hint: hint, alternatives: 1, at: .ms(0), bits: most)
    if case .waiting(let until) = machine.state { machine.elapsed(to: until, bits: most) }
    #expect(machine.take().last == .resolve(.alternative(0), round: 2))
    establish(&machine, for: 50_000, at: 1_000, bits: { 0 })
    machine.worked(2)
    machine.elapsed(to: .ms(38_499), bits: most)
    _ = machine.take()
    machine.elapsed(to: .ms(38_500), bits: most)
    let target: LinkMachine.Target = areAway ? .alternative(0) : .listed(0)
    #expect(machine.take() == [.resolve(target, round: 3)])
  }

  @Test func `renewals do not put off the return to a better server`() {
    var machine = LinkMachine.make([0, 1]) { $0.preferredRetry = .seconds(60) }
    machine.start(at: .ms(0), bits: { 0 })
    machine.finishRound(up: false, at: 0)
    machine.elapsed(to: .ms(1_000), bits: { 0 })
    var link = establish(&machine, for: 40_000, at: 1_000, bits: { 0 })
    machine.worked(link)
    machine.elapsed(to: .ms(31_000), bits: { 0 })
    #expect(machine.take().last == .resolve(.listed(1), round: 3))
    link = establish(&machine, for: 40_000, at: 31_000, bits: { 0 })
    machine.worked(link)
    machine.elapsed(to: .ms(60_999), bits: { 0 })
    _ = machine.take()
    machine.elapsed(to: .ms(61_000), bits: { 0 })
    #expect(machine.take() == [.resolve(.listed(0), round: 4)])
  }

  // MARK: No credential

  @Test func `a round without a credential blames no server, and the delays grow`() {
    var machine = LinkMachine.make([0, 1, 2])
    machine.start(at: .ms(0), bits: most)
    var now: Int64 = 0
    var windows: [Int64] = []
    for round: UInt32 in 1...4 {
      #expect(machine.nextEffect() == .resolve(.listed(0), round: round))
      machine.noCredential(round: round, at: .ms(now), bits: most)
      machine.noCredential(round: round, at: .ms(now), bits: most)
      #expect(machine.nextEffect() == .roundFailed(.listed(0)))
      windows.append((machine.takeWait()?.window ?? 0) / 1_000_000)
      now = milliseconds(machine.deadline)
      machine.elapsed(to: .ms(now), bits: most)
    }
    #expect(windows == [1_000, 2_000, 4_000, 8_000])
    #expect(machine.counts.coolDowns == 0)
    // A server that was tried before stays so.
    machine.finishRound(up: false, at: now)
    machine.elapsed(to: machine.deadline, bits: most)
    #expect(machine.target == .listed(1))
    machine.noCredential(round: machine.round, at: machine.deadline, bits: most)
    machine.elapsed(to: machine.deadline, bits: most)
    #expect(machine.target == .listed(1))
  }

  @Test func `a named server is tried when there is a credential again`() {
    var machine = LinkMachine.up()
    machine.peerLeft(
      1, .goneAway(.draining), hint: nil, alternatives: 2, at: .ms(0), bits: most)
    #expect(machine.take().last == .resolve(.alternative(0), round: 2))
    machine.noCredential(round: 2, at: .ms(0), bits: most)
    _ = machine.take()
    machine.elapsed(to: machine.deadline, bits: most)
    #expect(machine.take() == [.resolve(.alternative(0), round: 3)])
  }

  @Test func `a renewal without a credential leaves its link alone`() {
    for target in [LinkMachine.Target.listed(0), .alternative(0)] {
      var machine = LinkMachine.up()
      if case .alternative = target {
        machine.peerLeft(
          1, .goneAway(.draining), hint: 900_000_000_000, alternatives: 1, at: .ms(0), bits: most)
        machine.elapsed(to: .ms(1_000), bits: most)
      } else {
        machine.pathChanged(at: .ms(0), bits: most)
      }
      _ = machine.take()
      let link = establish(&machine, for: 100_000, at: 1_000, bits: { 0 })
      machine.worked(link)
      for round: UInt32 in 3...5 {
        while machine.round < round { machine.elapsed(to: machine.deadline, bits: most) }
        _ = machine.take()
        #expect(machine.target == target)
        machine.noCredential(round: round, at: machine.deadline, bits: most)
        #expect(machine.take() == [.roundFailed(target)])
        #expect(machine.state == .connected(link) && machine.failures == 0)
      }
    }
  }
}
