// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkCore

/// What the machines of the long link and of short links learn of each other, and of refusals.
@Suite struct ClientMachineTests {
  typealias Fact = ClientMachine.Fact
  typealias Effect = ClientMachine.Effect

  static let idBit = WayMachine.idBit
  static let terms: ClientMachine.Terms = (
    proof: 30_000_000_000, validity: nil, renewsInPlace: false
  )
  private static let plain: ClientMachine.Hints = (stayAway: nil, alternatives: 0)

  /// A link that took requests for a second, and ended.
  static func record(answered: Bool) -> ClientMachine.Record {
    (hasAnswered: answered, hasRequests: true, life: 1_000_000_000)
  }

  /// Tells the facts in turn, one a millisecond, and compares the effects and the state that follow
  /// from each. `waiting` requests wait, one less after each short link that opens.
  func play(
    _ steps: [(Fact, [Effect], ClientMachine.State)], on machine: inout ClientMachine,
    waiting: Int = 2, from start: Int64 = 0, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    var waiting = waiting
    for (index, (fact, effects, state)) in steps.enumerated() {
      if case .short(.opened) = fact { waiting -= 1 }
      machine.handle(fact, at: .ms(start + Int64(index)), bits: { 0 })
      let comment: Comment = "step \(index): \(fact)"
      #expect(machine.take(wanting: waiting) == effects, comment, sourceLocation: sourceLocation)
      #expect(machine.state == state, comment, sourceLocation: sourceLocation)
    }
  }

  static let first: [(Fact, [Effect], ClientMachine.State)] = [
    (
      .wanted(again: false), [.long(.resolve(.listed(0), round: 1))], .connecting(.listed(0))
    ),
    (
      .long(.resolved(round: 1, addresses: 1)), [.long(.connect(1, address: 0))],
      .connecting(.listed(0))
    ),
  ]

  /// A machine whose first attempt is under way.
  private func connecting(short ways: Int = 1, prepares: Bool = false) -> ClientMachine {
    var machine = ClientMachine.make(ways: ways, prepares: prepares)
    play(Self.first, on: &machine)
    return machine
  }

  /// A machine whose first link, with the number 1, takes requests.
  func connected(short ways: Int = 1, prepares: Bool = false) -> ClientMachine {
    var machine = connecting(short: ways, prepares: prepares)
    if prepares {
      play(
        [(.long(.established(1, Self.terms)), [.long(.prepare(1))], .connecting(.listed(0)))],
        on: &machine)
    }
    let last = prepares ? Fact.long(.prepared(1, Self.terms)) : .long(.established(1, Self.terms))
    play([(last, [.long(.use(1))], .connected(1))], on: &machine)
    return machine
  }

  /// A machine whose first link was cut; the next one, with the number 2, stands its trial.
  func tried(prepares: Bool = false) -> ClientMachine {
    var machine = connected(prepares: prepares)
    play(
      [
        (
          .long(.ended(1, .heartbeatLost, Self.record(answered: false))),
          [
            .short(.open(Self.idBit | 1, way: 0)), .short(.open(Self.idBit | 2, way: 0)),
          ], .waiting(.ms(0))
        ),
        (.elapsed, [.long(.resolve(.listed(0), round: 2))], .connecting(.listed(0))),
        (
          .long(.resolved(round: 2, addresses: 2)), [.long(.connect(2, address: 0))],
          .connecting(.listed(0))
        ),
        (.short(.opened(Self.idBit | 1)), [], .short(way: 0)),
        (.long(.established(2, Self.terms)), [], .short(way: 0)),
      ], on: &machine)
    #expect(machine.ways.isTrying(2) && !machine.link.isCurrent(2))
    return machine
  }

  @Test func `after a failed round requests take short links, until there is a long link`() {
    var machine = connecting()
    play(
      [
        (
          .long(.failed(1, .transport(111))),
          [
            .long(.roundFailed(.listed(0))), .short(.open(Self.idBit | 1, way: 0)),
            .short(.open(Self.idBit | 2, way: 0)),
          ], .waiting(.ms(0))
        ),
        (.short(.opened(Self.idBit | 1)), [], .short(way: 0)),
        (.elapsed, [.long(.resolve(.listed(0), round: 2))], .short(way: 0)),
        (
          .long(.resolved(round: 2, addresses: 1)), [.long(.connect(2, address: 0))],
          .short(way: 0)
        ),
        (
          .long(.established(2, Self.terms)),
          [.long(.use(2)), .short(.abandon(Self.idBit | 2))], .connected(2)
        ),
      ], on: &machine)
    #expect(!machine.ways.carriesRequests)
  }

  @Test func `an attempt that was dropped shows nothing`() {
    for reason in [.left, .closedHere] as [CloseReason] {
      var machine = connecting()
      play([(.long(.failed(1, reason)), [], .connecting(.listed(0)))], on: &machine)
    }
  }

  @Test func `the loss of a link begins the bound of short links`() {
    let answered = Self.record(answered: true)
    let losses: [Fact] = [
      .long(.ended(1, .heartbeatLost, answered)),
      .long(.peerLeft(1, .draining, Self.plain)),
      .serversSwitched([ServerList.Entry(priority: 0, weight: 1)], kept: [nil]),
    ]
    for loss in losses {
      var machine = connected()
      #expect(!machine.ways.carriesRequests && machine.ways.deadline == .distantFuture)
      machine.handle(loss, at: .ms(5), bits: { 0 })
      #expect(machine.ways.deadline == .ms(10_005), "\(loss)")
      _ = machine.take()
      machine.handle(.elapsed, at: .ms(10_005), bits: { 0 })
      #expect(machine.ways.carriesRequests)
    }
    var machine = connected()
    machine.handle(.suspended(lingering: 0), at: .ms(5), bits: { 0 })
    #expect(machine.ways.deadline == .distantFuture)
    machine.handle(.resumed, at: .ms(50), bits: { 0 })
    #expect(machine.ways.deadline == .ms(10_050))
  }

  // MARK: Trials

  @Test func `a link in its trial takes requests once it has answered`() {
    var machine = tried()
    play(
      [
        (.elapsed, [.short(.ping(2))], .short(way: 0)),
        (.long(.ponged(2)), [.short(.passed(2))], .short(way: 0)),
        (
          .long(.accepted(2, Self.terms)),
          [.long(.use(2)), .short(.abandon(Self.idBit | 2))], .connected(2)
        ),
      ], on: &machine, waiting: 1, from: 20_000)
  }

  @Test func `a trial ends with its link, with a goaway, and where short links do not do`() {
    let ends: [(Fact, [Effect])] = [
      (.long(.failed(2, .closedByPeer)), [.long(.roundFailed(.listed(0)))]),
      (.long(.failed(2, .left)), []),
      (
        .long(.leftEarly(2, Self.plain)),
        [.long(.retire(2)), .long(.roundFailed(.listed(0)))]
      ),
      (.short(.unfit), [.short(.passed(2))]),
      (
        .pathChanged,
        [
          .long(.abandon(2, .left)), .long(.resolve(.listed(0), round: 3)),
          .short(.abandon(Self.idBit | 2)),
        ]
      ),
    ]
    for (fact, effects) in ends {
      var machine = tried()
      machine.handle(fact, at: .ms(10), bits: { 0 })
      #expect(machine.take(wanting: 0) == effects, "\(fact)")
      #expect(!machine.ways.isTrying)
    }
  }

  @Test func `a link that has answered clears the next one of the suspicion`() {
    let waysOut: [[Fact]] = [
      [.long(.ended(1, .heartbeatLost, Self.record(answered: true)))],
      [
        .long(.answered), .long(.peerLeft(1, .draining, Self.plain)),
        .long(.ended(1, .heartbeatLost, Self.record(answered: false))),
      ],
      // This side has closed it.
      [.long(.ended(1, .closedHere, Self.record(answered: false)))],
    ]
    for facts in waysOut {
      var machine = connected()
      for fact in facts { machine.handle(fact, at: .ms(5), bits: { 0 }) }
      machine.handle(.elapsed, at: .ms(20_000), bits: { 0 })
      _ = machine.take()
      let round = machine.link.round
      machine.handle(.long(.resolved(round: round, addresses: 1)), at: .ms(20_000), bits: { 0 })
      machine.handle(.long(.established(2, Self.terms)), at: .ms(20_000), bits: { 0 })
      #expect(machine.link.isCurrent(2) && !machine.ways.isTrying, "\(facts)")
    }
  }

  @Test func `without short links no link stands a trial`() {
    var machine = connected(short: 0)
    machine.handle(
      .long(.ended(1, .heartbeatLost, Self.record(answered: false))), at: .ms(5), bits: { 0 })
    machine.handle(.elapsed, at: .ms(5), bits: { 0 })
    machine.handle(.long(.resolved(round: 2, addresses: 1)), at: .ms(5), bits: { 0 })
    machine.handle(.long(.established(2, Self.terms)), at: .ms(5), bits: { 0 })
    #expect(machine.link.isCurrent(2) && machine.ways.deadline == .distantFuture)
  }

  // MARK: Refusals

  /// A machine whose credential was refused twice over the long link.
  private func refused(short ways: Int) -> ClientMachine {
    var machine = connecting(short: ways)
    for known: UInt64 in 0...1 {
      machine.handle(
        .long(.refused([1], .unauthenticated, since: known)), at: .ms(2), bits: { 0 })
    }
    return machine
  }

  @Test func `the second refusal stops the long link, and short links take the requests`() {
    var machine = refused(short: 0)
    #expect(machine.isGivenUp && machine.isOffline && machine.failing(after: .refused) == .all)
    #expect(machine.state == .notAccepted(.unauthenticated))
    #expect(machine.take() == [.long(.abandon(1, .left))])
    machine = refused(short: 1)
    #expect(!machine.isGivenUp && !machine.isOffline && machine.failing(after: .refused) == .none)
    #expect(machine.take(wanting: 1).last == .short(.open(Self.idBit | 1, way: 0)))
  }

  @Test func `what makes a client connect again that was not accepted`() {
    let entry = ServerList.Entry(priority: 0, weight: 1)
    let table: [([Fact], Bool)] = [
      ([.wanted(again: false)], false),
      ([.asked, .wanted(again: true)], true),
      ([.short(.credential([1]))], false),
      ([.short(.credential([2]))], true),
      ([.serversSwitched([entry], kept: [0])], false),
      ([.serversSwitched([entry], kept: [nil])], true),
      ([.pathChanged], false),
      ([.suspended(lingering: 0), .resumed], false),
      ([.suspended(lingering: 0), .resumed, .wanted(again: false)], true),
    ]
    for (facts, connects) in table {
      var machine = refused(short: 1)
      _ = machine.take()
      for fact in facts { machine.handle(fact, at: .ms(3), bits: { 0 }) }
      let begins = machine.take().contains(.long(.resolve(.listed(0), round: 2)))
      #expect(begins == connects, "\(facts)")
    }
  }

  @Test func `refusals over short links end with a long link, an answer, or a question`() {
    let refusals: [Fact] = (0...1 as ClosedRange<UInt64>).map {
      .short(.refused([1], .forbidden, since: $0))
    }
    let table: [(Fact, Bool)] = [
      (.long(.established(1, Self.terms)), true), (.asked, true), (.short(.accepted([1])), true),
      (.short(.accepted([2])), false), (.wanted(again: true), false), (.pathChanged, false),
    ]
    for (fact, ends) in table {
      var machine = connecting()
      for refusal in refusals { machine.handle(refusal, at: .ms(2), bits: { 0 }) }
      let isAllowed = machine.allows(short: [2])
      #expect(!isAllowed)
      machine.handle(fact, at: .ms(3), bits: { 0 })
      #expect((machine.shortRefusals.finalCode == nil) == ends, "\(fact)")
    }
    // The application is told of them while nothing else happens.
    var idle = ClientMachine.make(long: false, ways: 1)
    #expect(idle.state == .idle)
    for refusal in refusals { idle.handle(refusal, at: .ms(2), bits: { 0 }) }
    #expect(idle.state == .notAccepted(.forbidden))
  }

  @Test func `a refused credential over short links spares the next link its trial`() {
    var machine = tried()
    machine.handle(.long(.failed(2, .closedByPeer)), at: .ms(10), bits: { 0 })
    for known: UInt64 in 0...1 {
      machine.handle(.short(.refused([1], .forbidden, since: known)), at: .ms(10), bits: { 0 })
    }
    machine.handle(.elapsed, at: .ms(20_000), bits: { 0 })
    machine.handle(.long(.resolved(round: 3, addresses: 1)), at: .ms(20_000), bits: { 0 })
    _ = machine.take()
    machine.handle(.long(.established(3, Self.terms)), at: .ms(20_000), bits: { 0 })
    #expect(machine.link.isCurrent(3))
  }

  // MARK: Any order

  /// A random fact, about links that there are and others.
  private func fact(
    _ dice: inout Seeded, _ machine: ClientMachine, short: [UInt32], preparing: Set<UInt32>
  ) -> Fact {
    let id = UInt32(1 + dice.below(Int(machine.link.lastAttempt) + 1))
    let link = short.isEmpty ? Self.idBit : short[dice.below(short.count)]
    let known = UInt64(dice.below(4))
    let facts: [Fact] = [
      .elapsed, .elapsed, .wanted(again: dice.below(2) == 0), .asked, .pathChanged,
      .suspended(lingering: 1_000_000), .resumed, .resumed,
      .serversSwitched([ServerList.Entry(priority: 0, weight: 1)], kept: [nil]),
      .long(.resolved(round: machine.link.round, addresses: dice.below(3))),
      .long(.noCredential(round: machine.link.round)), .long(.reached(id)),
      .long(.refused([UInt8(dice.below(2))], .unauthenticated, since: known)),
      .long(.turnedAway(id, isRefusal: false, Self.plain)), .long(.failed(id, .closedByPeer)),
      .long(.failed(id, .left)), .long(.established(id, Self.terms)),
      .long(.established(id, Self.terms)), .long(.established(id, Self.terms)),
      .long(.prepared(preparing.contains(id) ? id : 0, Self.terms)),
      .long(.leftEarly(id, Self.plain)), .long(.peerLeft(id, .draining, Self.plain)),
      .long(.heard(id)), .long(.ponged(id)), .long(.worked(id)), .long(.answered),
      .long(.ended(id, .heartbeatLost, Self.record(answered: dice.below(3) == 0))),
      .short(.credential([UInt8(dice.below(2))])), .short(.noCredential(link)),
      .short(.opened(link)), .short(.unfit), .short(.accepted([UInt8(dice.below(2))])),
      .short(.refused([UInt8(dice.below(2))], .forbidden, since: known)),
      .short(.turnedAway(link, hint: nil)), .short(.ended(link, .failed)),
      .short(.ended(link, .worked)), .short(.ended(link, .silent)),
    ]
    return facts[dice.below(facts.count)]
  }

  @Test(arguments: 0..<200 as Range<UInt64>)
  func `in any order of facts, requests go either over the long link or over short ones`(
    _ seed: UInt64
  ) {
    var dice = Seeded(seed)
    var machine = ClientMachine.make(ways: dice.below(3), prepares: seed % 2 == 0)
    var (now, short, passed) = (Int64(0), [UInt32](), UInt32?.none)
    var preparing: Set<UInt32> = []
    for _ in 0..<400 {
      now += Int64(dice.below(2_000))
      let fact =
        passed.map { .long(.accepted($0, Self.terms)) }
        ?? fact(&dice, machine, short: short, preparing: preparing)
      passed = nil
      let bits = UInt64(dice.below(1_000))
      machine.handle(fact, at: .ms(now), bits: { bits })
      for effect in machine.take(wanting: dice.below(4)) {
        switch effect {
        case .short(.open(let id, _)): short.append(id)
        case .short(.abandon(let id)): short.removeAll { $0 == id }
        case .short(.passed(let id)): passed = id
        case .long(.prepare(let id)): preparing.insert(id)
        case .long(.use(let id)): #expect(preparing.contains(id) == (seed % 2 == 0))
        case .short, .long: break
        }
      }
      let hasLink = machine.link.isReplacing
      #expect(!hasLink || !machine.ways.carriesRequests && !machine.ways.isTrying, "\(fact)")
      #expect(!hasLink || !machine.isOffline && !machine.isGivenUp, "\(fact)")
      switch machine.state {
      case .connected(let id), .migrating(let id, _): #expect(machine.link.isCurrent(id))
      case .short: #expect(!hasLink && machine.ways.isUsed)
      case .notAccepted: #expect(!hasLink)
      case .idle, .connecting, .waiting, .suspended, .closed: #expect(!hasLink, "\(fact)")
      }
    }
    machine.handle(.closed, at: .ms(now), bits: { 0 })
    #expect(machine.state == .closed && machine.deadline == .distantFuture)
  }
}

extension ClientMachine {
  static func make(long: Bool = true, ways: Int, prepares: Bool = false) -> ClientMachine {
    ClientMachine(
      servers: [ServerList.Entry(priority: 0, weight: 1)],
      LinkMachine.Settings(
        reconnect: ReconnectPolicy(), connectTimeout: 10_000_000_000,
        lingering: 10_000_000_000, prepares: prepares),
      ways: WayMachine.Settings(
        hasLongLink: long, ways: ways, connectBound: 10_000_000_000,
        reconnect: ReconnectPolicy()))
  }

  /// The effects that follow while this many requests wait, without word of the pauses.
  mutating func take(wanting count: Int = 0) -> [Effect] {
    var effects: [Effect] = []
    while true {
      while let effect = nextEffect() {
        if case .long(.wait) = effect { continue }
        effects.append(effect)
      }
      want(count)
      guard let effect = nextEffect() else { return effects }
      effects.append(effect)
    }
  }
}
