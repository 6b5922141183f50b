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
    bits: () -> UInt64 = { .max }, change: (inout ServerPolicy) -> Void = { _ in }
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
}
