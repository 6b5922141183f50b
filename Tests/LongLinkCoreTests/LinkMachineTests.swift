import LongLinkCore
import Testing

@Suite struct LinkMachineTests {
  private func machine(servers: Int = 1) -> LinkMachine {
    LinkMachine(
      settings: LinkMachine.Settings(
        servers: servers, policy: ReconnectPolicy(), connectTimeout: 1_000_000_000))
  }

  /// The largest delay there is, whatever the bound.
  private let most = { UInt64.max }

  @Test func `one round from wish to link`() {
    var machine = machine()
    #expect(machine.take() == [])
    machine.start()
    machine.start()
    #expect(machine.take() == [.resolve(server: 0, round: 1)])
    machine.resolved(round: 1, addresses: 1, at: .ms(0), bits: most)
    #expect(machine.take() == [.connect(1, address: 0)])
    #expect(machine.deadline == .ms(1000))
    machine.established(1)
    machine.established(1)
    #expect(machine.take() == [])
    #expect(machine.phase == .up(1))
    #expect(machine.deadline == .distantFuture)
  }

  @Test func `addresses race, a quarter of a second apart, and the first link wins`() {
    var machine = machine()
    machine.start()
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
    machine.established(3)
    #expect(machine.take() == [.abandon(2), .abandon(4)])
    // Those that lost come too late, or fail unheard.
    machine.established(4)
    machine.failed(2, at: .ms(600), bits: most)
    machine.ended(2, .closedByPeer, hint: nil, at: .ms(600), bits: most)
    #expect(machine.take() == [.abandon(4)])
    #expect(machine.phase == .up(3))
  }

  @Test func `an attempt that takes too long is given up`() {
    var machine = machine()
    machine.start()
    machine.resolved(round: 1, addresses: 1, at: .ms(0), bits: most)
    machine.elapsed(to: .ms(999), bits: most)
    _ = machine.take()
    machine.elapsed(to: .ms(1000), bits: most)
    #expect(machine.take() == [.abandon(1), .roundFailed(server: 0)])
    #expect(machine.phase == .waiting(.ms(2000)))
  }

  @Test func `a failed round moves on to the next server, and the last to the first`() {
    var machine = machine(servers: 3)
    machine.start()
    var now: Int64 = 0
    var tried: [Int] = []
    for _ in 0..<7 {
      guard case .resolve(let server, let round) = machine.take().last else {
        Issue.record("no round")
        return
      }
      tried.append(server)
      machine.resolved(round: round, addresses: 0, at: .ms(now), bits: most)
      #expect(machine.take() == [.roundFailed(server: server)])
      now = (machine.deadline - .start) / 1_000_000
      machine.elapsed(to: .ms(now), bits: most)
    }
    #expect(tried == [0, 1, 2, 0, 1, 2, 0])
  }

  @Test func `the bound doubles up to the cap and falls back when a session has worked`() {
    var machine = machine()
    machine.start()
    var round: UInt32 = 1
    var delays: [Int64] = []
    for _ in 0..<8 {
      machine.resolved(round: round, addresses: 0, at: .ms(0), bits: most)
      delays.append((machine.deadline - .start) / 1_000_000)
      machine.elapsed(to: machine.deadline, bits: most)
      round += 1
    }
    #expect(delays == [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000])
    #expect(machine.failures == 8)
    machine.resolved(round: round, addresses: 1, at: .ms(0), bits: most)
    machine.worked()
    #expect(machine.failures == 8, "word of an old link")
    machine.established(1)
    #expect(machine.failures == 8, "a greeting is not enough")
    machine.ended(1, .closedByPeer, hint: nil, at: .ms(0), bits: most)
    #expect(machine.failures == 9)
    #expect(machine.phase == .waiting(.ms(30_000)))
    machine.elapsed(to: .ms(30_000), bits: most)
    machine.resolved(round: round + 1, addresses: 1, at: .ms(30_000), bits: most)
    machine.established(2)
    machine.worked()
    #expect(machine.failures == 0)
    machine.ended(2, .closedByPeer, hint: nil, at: .ms(30_000), bits: most)
    #expect(machine.phase == .waiting(.ms(31_000)))
  }

  @Test(
    arguments: [
      (CloseReason.closedByPeer, 1000), (.heartbeatLost, 5000), (.transport(104), 1000),
    ] as [(CloseReason, Int64)])
  func `the first delay after a working link depends on how it was lost`(
    reason: CloseReason, bound: Int64
  ) {
    for (bits, share) in [(UInt64.max, 2), (1 << 63, 1), (0, 0)] as [(UInt64, Int64)] {
      var machine = up()
      machine.ended(1, reason, hint: nil, at: .ms(0), bits: { bits })
      #expect(machine.phase == .waiting(.ms(bound * share / 2)))
    }
  }

  @Test func `what the server asks for overrides the policy, to the millisecond`() {
    for works in [true, false] {
      var machine = up(works: works)
      machine.ended(1, .goneAway(503), hint: 7_000_000_000, at: .ms(0), bits: { 0 })
      #expect(machine.phase == .waiting(.ms(7000)))
    }
    // Nothing asked for is nothing granted: a server that drains at once is not run down.
    var machine = up(works: false)
    machine.ended(1, .goneAway(503), hint: 0, at: .ms(0), bits: most)
    #expect(machine.failures == 1)
    #expect(machine.phase == .waiting(.ms(1000)))
  }

  @Test func `closing ends everything, and what was not begun never begins`() {
    var machine = machine()
    machine.start()
    machine.resolved(round: 1, addresses: 3, at: .ms(0), bits: most)
    machine.elapsed(to: .ms(250), bits: most)
    machine.close()
    machine.close()
    #expect(machine.take() == [.abandon(1), .abandon(2)])
    machine.start()
    machine.resolved(round: 1, addresses: 3, at: .ms(300), bits: most)
    machine.elapsed(to: .ms(90_000), bits: most)
    machine.failed(1, at: .ms(300), bits: most)
    #expect(machine.take() == [])
    machine.established(2)
    #expect(machine.take() == [.abandon(2)])
    #expect(machine.phase == .closed && machine.deadline == .distantFuture)
  }

  private func up(works: Bool = true) -> LinkMachine {
    var machine = machine()
    machine.start()
    machine.resolved(round: 1, addresses: 1, at: .ms(0), bits: most)
    machine.established(1)
    if works { machine.worked() }
    _ = machine.take()
    return machine
  }

  @Test(arguments: 0..<200)
  func `anything may happen in any phase`(seed: Int) {
    var dice = Seeded(UInt64(seed))
    var machine = machine(servers: 1 + dice.below(3))
    var now = LinkInstant.start
    var live: Set<UInt32> = []
    var connected: Set<UInt32> = []
    var isClosed = false
    for _ in 0..<300 {
      let attempt = UInt32(dice.below(connected.count + 2))
      let bits = { UInt64.max / 3 }
      switch dice.below(10) {
      case 0: machine.start()
      case 1, 2:
        machine.resolved(
          round: UInt32(dice.below(30)), addresses: dice.below(4), at: now, bits: bits)
      case 3: machine.failed(attempt, at: now, bits: bits)
      case 4: machine.established(attempt)
      case 5: machine.worked()
      case 6:
        machine.ended(
          attempt, .closedByPeer, hint: dice.below(2) == 0 ? nil : 5, at: now, bits: bits)
      case 7 where dice.below(60) == 0:
        machine.close()
        isClosed = true
      default:
        if machine.deadline != .distantFuture { now = max(now, machine.deadline) }
        machine.elapsed(to: now, bits: bits)
      }
      for effect in machine.take() {
        switch effect {
        case .connect(let id, _):
          #expect(!isClosed)
          #expect(connected.insert(id).inserted, "an attempt's name is used once")
          live.insert(id)
        case .abandon(let id): live.remove(id)
        case .resolve(let server, _):
          #expect(!isClosed)
          #expect((0..<machine.settings.servers).contains(server))
        case .roundFailed, .wait: break
        }
      }
      if case .up(let id) = machine.phase { #expect(connected.contains(id)) }
      if case .waiting(let until) = machine.phase { #expect(machine.deadline == until) }
      if isClosed { #expect(machine.phase == .closed && machine.deadline == .distantFuture) }
    }
  }
}

extension LinkMachine {
  /// The effects that wait, without word of the pauses.
  fileprivate mutating func take() -> [Effect] {
    var effects: [Effect] = []
    while let effect = nextEffect() {
      if case .wait = effect { continue }
      effects.append(effect)
    }
    return effects
  }
}

@Suite struct ReconnectPolicyTests {
  @Test func `delays are even over the whole of the bound`() {
    var dice = Seeded(42)
    let bound: Int64 = 30_000_000_000
    var counts = [Int](repeating: 0, count: 20)
    let draws = 40_000
    for _ in 0..<draws {
      let delay = ReconnectPolicy.delay(within: bound, bits: dice.next())
      #expect((0...bound).contains(delay))
      counts[min(19, Int(delay / (bound / 20)))] += 1
    }
    // 2,000 each, with a standard deviation of 44.
    for count in counts { #expect((1800...2200).contains(count)) }
  }

  @Test func `the ends of the bound are reached`() {
    for bound in [1, 2, 1_000_000, Int64.max] {
      #expect(ReconnectPolicy.delay(within: bound, bits: .max) == bound)
      #expect(ReconnectPolicy.delay(within: bound, bits: 0) == 0)
    }
    #expect(ReconnectPolicy.delay(within: 0, bits: .max) == 0)
    #expect(ReconnectPolicy.delay(within: -5, bits: .max) == 0)
  }

  @Test func `no number of failures overflows the bound`() {
    let policy = ReconnectPolicy(base: .seconds(3), cap: .seconds(100))
    #expect(policy.bound(afterFailures: 1) == 3_000_000_000)
    #expect(policy.bound(afterFailures: 5) == 48_000_000_000)
    for failures in [7, 40, 63, 64, 65, 1000, Int.max] {
      #expect(policy.bound(afterFailures: failures) == 100_000_000_000)
    }
    let huge = ReconnectPolicy(base: .seconds(Int64.max), cap: .seconds(Int64.max))
    #expect(huge.bound(afterFailures: 3) == .max)
  }

  @Test func `instants and durations stay within their range`() {
    let last = LinkInstant(nanoseconds: .max)
    let first = LinkInstant(nanoseconds: .min)
    #expect(last + 1 == last && first + -1 == first)
    #expect(last - first == .max && first - last == .min)
    #expect(first.duration(to: last) == .nanoseconds(Int64.max))
    #expect(last.advanced(by: .seconds(Int64.max)) == last)
    #expect(Duration.seconds(Int64.min).clampedNanoseconds == .min)
    #expect(Duration.seconds(Int64.max).wireMilliseconds == .max)
    #expect(Duration.seconds(-1).wireMilliseconds == 0)
    #expect(Duration.nanoseconds(1).wireMilliseconds == 1)
    #expect(Duration.milliseconds(7).wireMilliseconds == 7)
  }
}
