// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// What is told too late, or in any order.
@Suite struct LinkMachineOrderTests {
  private let some = { UInt64.max / 3 }

  /// Tells a machine everything that can be told of an attempt or round that is over.
  private func tellAll(_ machine: inout LinkMachine, attempt: UInt32, round: UInt32) {
    machine.established(attempt, provenAfter: 1, at: .ms(700), bits: some)
    for reason in [CloseReason.closedByPeer, .heartbeatLost, .goneAway(.draining), .left] {
      machine.ended(attempt, reason, at: .ms(700), bits: some)
      machine.peerLeft(attempt, reason, hint: 9, alternatives: 2, at: .ms(700), bits: some)
    }
    machine.failed(attempt, at: .ms(700), bits: some)
    machine.worked(attempt)
    machine.outcome(attempt, isError: true, at: .ms(700), bits: some)
    machine.turnedAway(attempt, hint: 9, alternatives: 2, at: .ms(700))
    machine.resolved(round: round, addresses: 0, at: .ms(700), bits: some)
    machine.resolved(round: round, addresses: 5, at: .ms(700), bits: some)
  }

  @Test func `a late result of an old attempt or round affects nothing new`() {
    let change: (inout ReconnectPolicy) -> Void = {
      $0.errorRatio = ErrorRatio(minimumRequests: 1, ratio: 0.1)
    }
    // Attempts 1 and 2 of round 1 are over, one by failure, one by its end after it had worked.
    var machine = LinkMachine.make([0, 1], change: change)
    machine.start(at: .ms(0), bits: some)
    machine.resolved(round: 1, addresses: 2, at: .ms(0), bits: some)
    machine.failed(1, at: .ms(10), bits: some)
    machine.established(2, provenAfter: 30_000_000_000, at: .ms(20), bits: some)
    machine.worked(2)
    machine.ended(2, .closedByPeer, at: .ms(30), bits: some)
    _ = machine.take()
    var phases = [machine]
    machine.elapsed(to: .ms(600), bits: some)
    _ = machine.take()
    phases.append(machine)
    machine.resolved(round: 2, addresses: 2, at: .ms(610), bits: some)
    _ = machine.take()
    phases.append(machine)
    machine.established(3, provenAfter: 30_000_000_000, at: .ms(620), bits: some)
    _ = machine.take()
    phases.append(machine)
    var replacing = machine
    replacing.pathChanged(at: .ms(630), bits: some)
    replacing.resolved(round: 3, addresses: 1, at: .ms(640), bits: some)
    _ = replacing.take()
    phases.append(replacing)
    machine.suspend(lingering: 0, at: .ms(650))
    machine.ended(3, .left, at: .ms(650), bits: some)
    _ = machine.take()
    phases.append(machine)
    for (index, phase) in phases.enumerated() {
      for attempt: UInt32 in [0, 1, 2, 77] {
        var told = phase
        tellAll(&told, attempt: attempt, round: 1)
        // A link that nobody knows is left; that is all.
        #expect(told.take() == [.abandon(attempt, .left)], "phase \(index), attempt \(attempt)")
        #expect(told == phase, "phase \(index), attempt \(attempt)")
      }
    }
    #expect(phases.count == 6)
  }

  @Test(arguments: 0..<300)
  func `anything may happen at any time`(seed: Int) {
    var run = RandomRun(seed: UInt64(seed))
    for _ in 0..<400 {
      let attempt = UInt32(run.dice.below(run.connected.count + 2))
      let hint: Int64? = run.dice.below(2) == 0 ? nil : 5_000_000
      run.tell(run.dice.below(16), attempt: attempt, hint: hint)
      run.judgeEffects()
      run.judgeState()
    }
  }
}

/// A machine that is told whatever the dice say.
private struct RandomRun {
  var dice: Seeded
  var machine: LinkMachine
  var now = LinkInstant.start
  var live: Set<UInt32> = []
  var connected: Set<UInt32> = []
  var retired: Set<UInt32> = []
  var left: Set<UInt32> = []
  var (isClosed, isSuspended) = (false, false)
  private let some = { UInt64.max / 3 }

  init(seed: UInt64) {
    var dice = Seeded(seed)
    machine = LinkMachine.make((0...dice.below(3)).map { _ in dice.below(2) }) {
      $0.errorRatio = ErrorRatio(minimumRequests: 2, ratio: 0.5, window: 3)
    }
    self.dice = dice
  }

  /// Tells it of one of its attempts, or of its client.
  mutating func tell(_ event: Int, attempt: UInt32, hint: Int64?) {
    switch event {
    case 0: machine.start(at: now, bits: some)
    case 1, 2:
      machine.resolved(
        round: machine.round &- UInt32(dice.below(2)), addresses: dice.below(4), at: now,
        bits: some)
    case 3: machine.failed(attempt, at: now, bits: some)
    case 4, 5:
      machine.established(
        attempt, provenAfter: 50_000_000,
        validFor: dice.below(2) == 0 ? nil : 2_000_000_000, renewsInPlace: dice.below(2) == 0,
        at: now, bits: some)
    case 6 where dice.below(2) == 0: renew(attempt)
    case 6: machine.worked(attempt)
    case 7: machine.ended(attempt, .closedByPeer, at: now, bits: some)
    case 8:
      machine.peerLeft(
        attempt, .goneAway(.draining), hint: hint, alternatives: dice.below(3), at: now,
        bits: some)
    case 9: machine.outcome(attempt, isError: dice.below(2) == 0, at: now, bits: some)
    case 10: machine.turnedAway(attempt, hint: hint, alternatives: dice.below(3), at: now)
    case 11 where dice.below(4) == 0: machine.pathChanged(at: now, bits: some)
    case 12 where dice.below(4) == 0:
      machine.suspend(lingering: Int64(dice.below(2)) * 7_000_000, at: now)
      isSuspended = true
    case 13 where dice.below(2) == 0:
      machine.resume(at: now, bits: some)
      isSuspended = false
    case 14 where dice.below(8) == 0: switchServers()
    case 15 where dice.below(60) == 0:
      machine.close(at: now)
      isClosed = true
    default:
      if machine.deadline != .distantFuture { now = max(now, machine.deadline) }
      machine.elapsed(to: now, bits: some)
    }
  }

  /// Tells it what came of a renewal, if there was one or not.
  private mutating func renew(_ attempt: UInt32) {
    switch dice.below(3) {
    case 0: machine.renewed(attempt, validFor: 3_000_000_000, at: now, bits: some)
    case 1: machine.notRenewed(attempt, again: dice.below(4) > 0, at: now)
    default: machine.cannotRenew(attempt, at: now, bits: some)
    }
  }

  private mutating func switchServers() {
    let servers = 1 + dice.below(3)
    let entries = (0..<servers).map { ServerList.Entry(priority: $0, weight: 1) }
    let kept: [Int?] = (0..<servers).map { $0 == 0 ? 0 : nil }
    machine.switchServers(to: entries, kept: kept, at: now, bits: some)
  }

  mutating func judgeEffects() {
    for effect in machine.take() {
      switch effect {
      case .connect(let id, _):
        #expect(!isClosed && !isSuspended)
        #expect(connected.insert(id).inserted, "an attempt's name is used once")
        live.insert(id)
      case .abandon(let id, _):
        live.remove(id)
        left.insert(id)
      case .resolve(let target, _):
        #expect(!isClosed && !isSuspended)
        if case .listed(let index) = target { #expect((0..<4).contains(index)) }
      case .use(let id), .proven(let id), .probe(let id), .renew(let id), .prepare(let id):
        #expect(connected.contains(id) && !retired.contains(id))
      case .retire(let id): #expect(retired.insert(id).inserted)
      case .expire(let id): #expect(retired.contains(id) || left.contains(id))
      case .roundFailed, .wait: break
      }
    }
    #expect(machine.counts.migrations <= UInt64(retired.count))
  }

  func judgeState() {
    switch machine.state {
    case .connected(let id), .migrating(let id, _):
      #expect(connected.contains(id) && !retired.contains(id))
      #expect(machine.isCurrent(id) == true)
    case .waiting(let until): #expect(machine.deadline <= until)
    case .closed: #expect(isClosed && machine.deadline == .distantFuture)
    case .suspended: #expect(isSuspended)
    case .idle, .connecting, .stopped: break
    }
    if isClosed { #expect(machine.state == .closed) }
  }
}
