// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// The second attempt of a round whose first ones have no answer.
@Suite struct SecondAttemptTests {
  private let most = { UInt64.max }

  /// A machine whose round has begun at instant 0.
  private func connecting(
    to addresses: Int = 1, timeout: Int64 = 10_000_000_000
  ) -> LinkMachine {
    var machine = LinkMachine.make(connectTimeout: timeout)
    machine.start(at: .ms(0), bits: most)
    machine.resolved(round: 1, addresses: addresses, at: .ms(0), bits: most)
    return machine
  }

  @Test func `an attempt without an answer gets one beside it after a second`() {
    for winner in [1, 2] as [LinkMachine.AttemptID] {
      var machine = connecting()
      #expect(machine.deadline == .ms(1_000))
      machine.elapsed(to: .ms(999), bits: most)
      #expect(machine.take() == [.resolve(.listed(0), round: 1), .connect(1, address: 0)])
      machine.elapsed(to: .ms(1_000), bits: most)
      #expect(machine.take() == [.connect(2, address: 0)])
      // There is no third one.
      #expect(machine.deadline == .ms(10_000))
      machine.established(winner, provenAfter: 1, at: .ms(3_000), bits: most)
      #expect(machine.take() == [.abandon(3 - winner, .left), .use(winner)])
      #expect(machine.counts.secondAttempts == 1)
    }
  }

  @Test func `both attempts end at the time of the first, and fail the round once`() {
    var machine = connecting()
    machine.elapsed(to: .ms(1_000), bits: most)
    _ = machine.take()
    machine.elapsed(to: .ms(10_000), bits: most)
    #expect(
      machine.take() == [
        .abandon(1, .handshakeTimeout), .abandon(2, .handshakeTimeout), .roundFailed(.listed(0)),
      ])
    #expect(machine.failures == 1)
  }

  @Test func `a server that has answered, or refused, gets no second attempt`() {
    var slow = connecting()
    slow.reached(1)
    #expect(slow.deadline == .ms(10_000))
    slow.elapsed(to: .ms(9_999), bits: most)
    #expect(slow.take().last == .connect(1, address: 0))
    var refusing = connecting()
    _ = refusing.take()
    refusing.failed(1, at: .ms(1), bits: most)
    #expect(refusing.take() == [.roundFailed(.listed(0))])
    #expect(slow.counts.secondAttempts == 0 && refusing.counts.secondAttempts == 0)
  }

  @Test func `of several addresses, the one that is silent longest gets it`() {
    var machine = connecting(to: 3)
    machine.failed(1, at: .ms(100), bits: most)
    machine.elapsed(to: .ms(350), bits: most)
    _ = machine.take()
    #expect(machine.deadline == .ms(1_350))
    machine.elapsed(to: .ms(1_350), bits: most)
    #expect(machine.take() == [.connect(4, address: 1)])
    var heard = connecting(to: 3)
    heard.elapsed(to: .ms(250), bits: most)
    heard.reached(1)
    // The other addresses still have their turns.
    heard.elapsed(to: .ms(500), bits: most)
    _ = heard.take()
    #expect(heard.deadline == .ms(10_000))
  }

  @Test func `there is none where the first would end before it`() {
    var machine = connecting(timeout: 1_000_000_000)
    machine.elapsed(to: .ms(1_000), bits: most)
    #expect(machine.take().suffix(2) == [.abandon(1, .handshakeTimeout), .roundFailed(.listed(0))])
  }

  @Test func `a link that is held gets none beside it`() {
    var machine = connecting()
    machine.hold(1)
    machine.elapsed(to: .ms(9_000), bits: most)
    #expect(machine.take().last == .connect(1, address: 0))
  }
}
