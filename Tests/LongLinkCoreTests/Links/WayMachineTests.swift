// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// When requests take short links, over which way, and how many at once.
@Suite struct WayMachineTests {
  private func machine(long: Bool = true, ways: Int = 1) -> WayMachine {
    WayMachine(
      settings: WayMachine.Settings(
        hasLongLink: long, ways: ways, connectBound: 10_000_000_000, reconnect: ReconnectPolicy()))
  }

  @Test func `short links alone are used at once, up to the limit`() {
    var machine = machine(long: false)
    machine.want(20)
    #expect(machine.take().count == 8)
    machine.want(20)
    #expect(machine.take().isEmpty)
    #expect(machine.current == nil)
    let first = WayMachine.idBit | 1
    machine.opened(first)
    #expect(machine.current == 0)
    machine.ended(first, .worked, at: .ms(1), bits: { 0 })
    machine.want(19)
    #expect(machine.take() == [.open(WayMachine.idBit | 9, way: 0)])
  }

  @Test func `with the long link they wait for a failed round`() {
    var machine = machine()
    machine.start(at: .ms(0))
    machine.want(1)
    #expect(machine.take().isEmpty && !machine.carriesRequests)
    machine.roundFailed()
    machine.want(1)
    #expect(machine.take() == [.open(WayMachine.idBit | 1, way: 0)])
  }

  @Test func `or for the connect bound, which begins with the loss of a link`() {
    var machine = machine()
    machine.start(at: .ms(0))
    #expect(machine.deadline == .ms(10_000))
    machine.connected()
    #expect(machine.deadline == .distantFuture)
    machine.lost(at: .ms(90_000))
    machine.start(at: .ms(95_000))
    #expect(machine.deadline == .ms(100_000))
    machine.want(1)
    machine.elapsed(to: .ms(99_999))
    machine.want(1)
    #expect(machine.take().isEmpty)
    machine.elapsed(to: .ms(100_000))
    machine.want(1)
    #expect(machine.take() == [.open(WayMachine.idBit | 1, way: 0)])
  }

  @Test func `a link takes the requests again, and abandons what is only being opened`() {
    var machine = machine()
    machine.roundFailed()
    machine.want(2)
    _ = machine.take()
    machine.opened(WayMachine.idBit | 1)
    machine.connected()
    #expect(machine.take() == [.abandon(WayMachine.idBit | 2)])
    #expect(machine.count == 1 && machine.current == nil)
    machine.ended(WayMachine.idBit | 1, .worked, at: .ms(2), bits: { 0 })
    machine.want(1)
    #expect(machine.take().isEmpty)
  }

  @Test func `the next way follows a failed one, and a pause follows the last`() {
    var machine = machine(long: false, ways: 2)
    machine.want(1)
    #expect(machine.take() == [.open(WayMachine.idBit | 1, way: 0)])
    machine.ended(WayMachine.idBit | 1, .failed, at: .ms(0), bits: { .max })
    machine.want(1)
    #expect(machine.take() == [.open(WayMachine.idBit | 2, way: 1)])
    machine.ended(WayMachine.idBit | 2, .failed, at: .ms(0), bits: { .max })
    machine.want(1)
    #expect(machine.take() == [.allFailed])
    #expect(!machine.carriesRequests && machine.deadline == .ms(1_000))
    machine.elapsed(to: .ms(1_000))
    machine.want(1)
    #expect(machine.take() == [.open(WayMachine.idBit | 3, way: 0)])
  }

  @Test func `the pauses grow, are never none, and one that works resets them`() {
    var machine = machine(long: false)
    var id: UInt32 = 0
    var now: Int64 = 0
    for pause in [500, 1_000, 2_000, 4_000] as [Int64] {
      machine.want(1)
      id += 1
      #expect(machine.take() == [.open(WayMachine.idBit | id, way: 0)])
      machine.ended(WayMachine.idBit | id, .failed, at: .ms(now), bits: { 0 })
      #expect(machine.take() == [.allFailed])
      #expect(machine.deadline == .ms(now + pause))
      now += pause
      machine.elapsed(to: .ms(now))
    }
    machine.want(1)
    id += 1
    machine.opened(WayMachine.idBit | id)
    machine.ended(WayMachine.idBit | id, .worked, at: .ms(now), bits: { 0 })
    machine.want(1)
    _ = machine.take()
    id += 1
    machine.ended(WayMachine.idBit | id, .failed, at: .ms(now), bits: { 0 })
    #expect(machine.deadline == .ms(now + 500))
  }

  @Test func `ways that open and fail before a request was sent do not take turns for ever`() {
    var machine = machine(long: false, ways: 2)
    for id in 1...2 as ClosedRange<UInt32> {
      machine.want(1)
      machine.opened(WayMachine.idBit | id)
      machine.ended(WayMachine.idBit | id, .failed, at: .ms(0), bits: { 0 })
    }
    machine.want(1)
    #expect(machine.take().last == .allFailed && machine.deadline == .ms(500))
  }

  @Test func `several that fail together count as one failure`() {
    var machine = machine(long: false, ways: 3)
    machine.want(3)
    let opened = machine.take()
    #expect(opened.count == 3)
    for id in 1...3 as ClosedRange<UInt32> {
      machine.ended(WayMachine.idBit | id, .failed, at: .ms(0), bits: { 0 })
    }
    #expect(machine.way == 1)
  }

  @Test func `a request without a word of the server changes no way`() {
    var machine = machine(long: false, ways: 2)
    machine.want(1)
    machine.opened(WayMachine.idBit | 1)
    machine.ended(WayMachine.idBit | 1, .silent, at: .ms(0), bits: { 0 })
    #expect(machine.way == 0 && machine.carriesRequests)
  }

  @Test func `a way over which no server says a word is left after three requests`() {
    var machine = machine(long: false, ways: 2)
    machine.want(4)
    func end(_ id: UInt32, _ outcome: WayMachine.Outcome) {
      machine.ended(WayMachine.idBit | id, outcome, at: .ms(0), bits: { 0 })
    }
    end(1, .silent)
    end(2, .silent)
    end(3, .worked)
    #expect(machine.way == 0)
    machine.want(4)
    end(4, .silent)
    end(5, .silent)
    end(6, .unused)
    #expect(machine.way == 0)
    end(7, .silent)
    #expect(machine.way == 1 && machine.carriesRequests)
    // Those of the earlier choice show nothing of the way that is chosen now.
    machine.want(4)
    for id in 8...11 as ClosedRange<UInt32> { end(id, .silent) }
    #expect(machine.way == 0)
    var only = self.machine(long: false, ways: 1)
    for id in 1...4 as ClosedRange<UInt32> {
      only.want(1)
      only.ended(WayMachine.idBit | id, .silent, at: .ms(0), bits: { 0 })
    }
    #expect(only.way == 0 && only.carriesRequests)
  }

  @Test func `a change of the network forgets the way, the pause and the choice`() {
    var machine = machine(ways: 2)
    machine.roundFailed()
    machine.want(1)
    machine.ended(WayMachine.idBit | 1, .failed, at: .ms(0), bits: { 0 })
    machine.want(1)
    machine.ended(WayMachine.idBit | 2, .failed, at: .ms(0), bits: { 0 })
    _ = machine.take()
    machine.pathChanged(at: .ms(100))
    #expect(!machine.usesShortLinks && machine.way == 0 && machine.deadline == .ms(10_100))
  }

  @Test func `a suspension opens nothing, and lets requests linger`() {
    var machine = machine(long: false)
    machine.want(2)
    _ = machine.take()
    machine.opened(WayMachine.idBit | 1)
    machine.suspend(lingering: 1_000_000_000, at: .ms(10))
    #expect(machine.take() == [.abandon(WayMachine.idBit | 2)])
    machine.want(5)
    #expect(machine.take().isEmpty && machine.deadline == .ms(1_010))
    machine.elapsed(to: .ms(1_010))
    #expect(machine.take() == [.abandon(WayMachine.idBit | 1)])
    machine.resume(wantsLink: true, at: .ms(2_000))
    machine.want(5)
    #expect(machine.take().count == 5)
  }

  @Test func `a suspension without short links has no timer`() {
    var machine = machine()
    machine.start(at: .ms(0))
    machine.suspend(lingering: 1_000_000_000, at: .ms(10))
    #expect(machine.take().isEmpty && machine.deadline == .distantFuture)
  }

  /// Random facts in any order: never more than the limit, and a deadline only where one is due.
  @Test(arguments: 0..<200 as Range<UInt64>)
  func `no order of facts breaks its bounds`(_ seed: UInt64) {
    var dice = Seeded(seed)
    var machine = machine(long: dice.below(2) == 0, ways: 1 + dice.below(3))
    var open: Set<UInt32> = []
    var seen: Set<UInt32> = []
    var (lastLong, tried) = (UInt32(0), UInt32?.none)
    var now: Int64 = 0
    for _ in 0..<300 {
      now += Int64(dice.below(3_000))
      let some = open.sorted().first { _ in dice.below(2) == 0 }
      switch dice.below(14) {
      case 0: machine.start(at: .ms(now))
      case 1: machine.roundFailed()
      case 2: machine.connected()
      case 3:
        machine.lost(at: .ms(now))
        if dice.below(2) == 0 {
          machine.wasCut(on: dice.below(2), hasRequests: dice.below(2) == 0, life: now)
        }
        if dice.below(4) == 0 { machine.answered() }
      case 12: if let tried { machine.ponged(tried) }
      case 11:
        lastLong += 1
        let begins = machine.beginTrial(
          of: lastLong, on: dice.below(2), validFor: nil, at: .ms(now))
        if begins { tried = lastLong }
      case 4: machine.pathChanged(at: .ms(now))
      case 5 where dice.below(4) == 0: machine.suspend(lingering: 500_000_000, at: .ms(now))
      case 6: machine.resume(wantsLink: true, at: .ms(now))
      case 7, 8: machine.want(dice.below(20))
      case 9: if let some { machine.opened(some) }
      case 10:
        if let some {
          let outcomes: [WayMachine.Outcome] = [.failed, .silent, .worked, .unused]
          let bits = UInt64(dice.below(1_000))
          machine.ended(some, outcomes[dice.below(4)], at: .ms(now), bits: { bits })
          open.remove(some)
        }
      default: machine.elapsed(to: .ms(now))
      }
      for effect in machine.take() {
        switch effect {
        case .open(let id, let way):
          #expect(seen.insert(id).inserted && way < machine.settings.ways)
          open.insert(id)
        case .abandon(let id): open.remove(id)
        case .allFailed: break
        case .ping(let id): #expect(id == tried)
        case .passed(let id):
          #expect(id == tried && !machine.isTrying)
          tried = nil
        }
      }
      #expect(machine.count == open.count && open.count <= 8)
    }
  }
}

extension WayMachine {
  mutating func take() -> [Effect] {
    var effects: [Effect] = []
    while let effect = nextEffect() { effects.append(effect) }
    return effects
  }
}
