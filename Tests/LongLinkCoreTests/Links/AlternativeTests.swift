// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// Servers that a draining one names.
@Suite struct AlternativeTests {
  private let most = { UInt64.max }
  private let draining = CloseReason.goneAway(.draining)

  @Test func `alternatives come first, each once, best first, and then the list`() {
    var machine = LinkMachine.up([0, 1])
    machine.peerLeft(1, draining, hint: nil, alternatives: 2, at: .ms(0), bits: most)
    #expect(machine.take() == [.retire(1), .resolve(.alternative(0), round: 2)])
    var tried: [LinkMachine.Target] = []
    var now: Int64 = 0
    for _ in 0..<4 {
      tried.append(machine.target)
      machine.finishRound(up: false, at: now)
      now = (machine.deadline - .start) / 1_000_000
      machine.elapsed(to: .ms(now), bits: most)
    }
    #expect(tried == [.alternative(0), .alternative(1), .listed(1), .listed(0)])
  }

  @Test func `from an alternative the client comes back to its list`() {
    var machine = LinkMachine.up([0]) { $0.preferredRetry = .seconds(10) }
    machine.peerLeft(1, draining, hint: nil, alternatives: 1, at: .ms(0), bits: most)
    let second = machine.finishRound(up: true, at: 0)
    machine.worked(second)
    machine.ended(1, .closedHere, at: .ms(1), bits: most)
    _ = machine.take()
    machine.elapsed(to: .ms(12_000), bits: most)
    #expect(machine.take() == [.resolve(.listed(0), round: 3)])
    #expect(machine.state == .migrating(second, to: .listed(0)))
    // The next goaway's are other servers, with other numbers.
    machine.peerLeft(second, draining, hint: nil, alternatives: 2, at: .ms(12_000), bits: most)
    machine.finishRound(up: false, at: 12_001)
    machine.elapsed(to: machine.deadline, bits: most)
    #expect(machine.target == .alternative(1))
  }

  @Test func `alternatives are not followed where the policy says so`() {
    var machine = LinkMachine.up([0]) { $0.followsAlternatives = false }
    machine.peerLeft(1, draining, hint: nil, alternatives: 2, at: .ms(0), bits: most)
    #expect(machine.state == .waiting(.ms(1000)) && machine.alternativesNamed == 0)
  }

  @Test func `alternatives are forgotten once a server of the list has worked`() {
    var machine = LinkMachine.up([0])
    machine.peerLeft(1, draining, hint: nil, alternatives: 3, at: .ms(0), bits: most)
    machine.finishRound(up: false, at: 0)
    machine.elapsed(to: machine.deadline, bits: most)
    #expect(machine.target == .alternative(1))
    machine.worked(machine.finishRound(up: true, at: 2_000))
    machine.elapsed(to: .ms(100_000), bits: most)
    #expect(machine.target == .listed(0))
    let preferred = machine.finishRound(up: true, at: 100_000)
    #expect(machine.state == .connected(preferred))
    var fork = machine
    machine.worked(preferred)
    machine.ended(preferred, .closedByPeer, at: .ms(200_000), bits: most)
    machine.elapsed(to: .ms(300_000), bits: most)
    #expect(machine.state == .connecting(.listed(0)))
    // One that has only greeted is no proof.
    fork.ended(preferred, .closedByPeer, at: .ms(100_001), bits: most)
    fork.elapsed(to: .ms(300_000), bits: most)
    #expect(fork.state == .connecting(.alternative(2)))
  }

  @Test(arguments: [false, true])
  func `alternatives are used while the list asks to be left alone`(suspends: Bool) {
    for (end, target) in [
      (59_999, .alternative(1)), (60_000, .listed(0)),
    ] as [(Int64, LinkMachine.Target)] {
      var machine = LinkMachine.up([0])
      machine.peerLeft(1, draining, hint: 60_000_000_000, alternatives: 2, at: .ms(0), bits: most)
      machine.elapsed(to: .ms(1_000), bits: most)
      #expect(machine.target == .alternative(0))
      let second = machine.finishRound(up: true, at: 1_000)
      machine.worked(second)
      if suspends {
        machine.suspend(lingering: 0, at: .ms(1_001))
        machine.resume(at: .ms(end), bits: most)
      } else {
        machine.ended(second, .closedByPeer, at: .ms(end), bits: most)
        machine.elapsed(to: .ms(end + 1_000), bits: most)
      }
      #expect(machine.state == .connecting(target))
    }
  }

  @Test func `a named server that drains leaves the others that were named`() {
    var machine = LinkMachine.up([0])
    machine.peerLeft(1, draining, hint: nil, alternatives: 2, at: .ms(0), bits: most)
    let second = machine.finishRound(up: true, at: 0)
    machine.worked(second)
    machine.peerLeft(second, draining, hint: nil, alternatives: 0, at: .ms(10), bits: most)
    #expect(machine.state == .connecting(.alternative(1)))
  }

  @Test func `alternatives named in place of a welcome count only where there is no link`() {
    var machine = LinkMachine.up([0, 1])
    machine.pathChanged(at: .ms(0), bits: most)
    machine.resolved(round: 2, addresses: 1, at: .ms(0), bits: most)
    var fork = machine
    machine.turnedAway(2, hint: nil, alternatives: 1, at: .ms(1))
    machine.failed(2, at: .ms(1), bits: most)
    #expect(machine.state == .connected(1) && machine.alternativesNamed == 0)
    machine.ended(1, .closedByPeer, at: .ms(2), bits: most)
    machine.elapsed(to: machine.deadline, bits: most)
    #expect(machine.target == .listed(1))
    // The link is lost while the round is under way.
    fork.ended(1, .closedByPeer, at: .ms(1), bits: most)
    fork.turnedAway(2, hint: nil, alternatives: 1, at: .ms(2))
    fork.failed(2, at: .ms(2), bits: most)
    fork.elapsed(to: fork.deadline, bits: most)
    #expect(fork.target == .alternative(0))
  }
}
