// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// Short links for which there is no credential yet, or none, or that a server turns away.
@Suite struct WayMachineIdentityTests {
  private func machine(long: Bool = false, ways: Int = 1) -> WayMachine {
    WayMachine(
      settings: WayMachine.Settings(
        hasLongLink: long, ways: ways, connectBound: 10_000_000_000,
        reconnect: ReconnectPolicy()))
  }

  private func id(_ number: UInt32) -> WayMachine.ID { WayMachine.idBit | number }

  @Test func `a short link is opening until it is open, or was given up`() {
    var machine = machine(long: true)
    machine.roundFailed()
    machine.want(3)
    _ = machine.take()
    #expect(machine.isOpening(id(1)) && machine.isOpening(id(3)) && !machine.isOpening(id(4)))
    machine.opened(id(1))
    machine.ended(id(2), .unused, at: .ms(0), bits: { 0 })
    #expect(!machine.isOpening(id(1)) && !machine.isOpening(id(2)))
    let ends: [(inout WayMachine) -> Void] = [
      { $0.suspend(lingering: 0, at: .ms(1)) }, { $0.pathChanged(at: .ms(1)) },
      { $0.connected() }, { $0.close() },
    ]
    for end in ends {
      var fork = machine
      end(&fork)
      #expect(!fork.isOpening(id(3)))
    }
  }

  @Test func `without a credential a pause follows, and the way stays`() {
    var machine = machine(ways: 2)
    var now: Int64 = 0
    for pause in [500, 1_000, 2_000] as [Int64] {
      machine.want(8)
      let opened = machine.take().compactMap { effect -> WayMachine.ID? in
        if case .open(let id, way: 0) = effect { id } else { nil }
      }
      #expect(opened.count == 8)
      // One call has failed for all of them.
      for id in opened { machine.noCredential(id, at: .ms(now), bits: { 0 }) }
      #expect(machine.take() == [.allFailed] && machine.count == 0)
      machine.want(8)
      #expect(machine.take() == [] && !machine.carriesRequests)
      now += pause
      #expect(machine.deadline == .ms(now))
      machine.elapsed(to: .ms(now))
    }
  }

  @Test func `a server that turns requests away is left for the next way, and then a pause`() {
    var machine = machine(ways: 2)
    machine.want(2)
    _ = machine.take()
    machine.opened(id(1))
    machine.opened(id(2))
    machine.turnedAway(id(1), hint: nil, at: .ms(0), bits: { 0 })
    // The other one was opened before that was known.
    machine.turnedAway(id(2), hint: nil, at: .ms(0), bits: { 0 })
    machine.want(1)
    #expect(machine.take() == [.open(id(3), way: 1)])
    machine.opened(id(3))
    #expect(machine.count == 3 && machine.current == 1)
    machine.turnedAway(id(3), hint: nil, at: .ms(0), bits: { 0 })
    #expect(machine.take() == [.allFailed] && machine.deadline == .ms(500))
    for number: UInt32 in 1...3 { machine.ended(id(number), .worked, at: .ms(1), bits: { 0 }) }
    #expect(machine.count == 0 && machine.deadline == .ms(500), "their ends say nothing more")
  }

  @Test func `the pause lasts as long as the server asks`() {
    var machine = machine()
    machine.want(1)
    _ = machine.take()
    machine.opened(id(1))
    machine.turnedAway(id(1), hint: 7_000_000_000, at: .ms(0), bits: { 0 })
    #expect(machine.deadline == .ms(7_000))
  }
}
