// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// Drains, changed networks, suspension and other lists of servers.
@Suite struct LinkMachineMovingTests {
  private let most = { UInt64.max }
  private let draining = CloseReason.goneAway(.draining)

  // MARK: Drains

  @Test func `a draining server is left at once for another, and its link lingers`() {
    var machine = LinkMachine.up([0, 1])
    machine.peerLeft(1, draining, hint: nil, alternatives: 0, at: .ms(100), bits: most)
    #expect(machine.take() == [.retire(1), .resolve(.listed(1), round: 2)])
    #expect(machine.state == .connecting(.listed(1)))
    let second = machine.finishRound(up: true, at: 200)
    #expect(machine.state == .connected(second))
    machine.elapsed(to: .ms(10_099), bits: most)
    #expect(machine.take() == [])
    machine.elapsed(to: .ms(10_100), bits: most)
    #expect(machine.take() == [.expire(1)])
    machine.elapsed(to: .ms(10_101), bits: most)
    #expect(machine.take() == [], "once")
    machine.ended(1, .left, at: .ms(10_102), bits: most)
    #expect(machine.state == .connected(second))
  }

  @Test func `a link that has lingered and ended is forgotten`() {
    var machine = LinkMachine.up([0, 1])
    machine.peerLeft(1, draining, hint: nil, alternatives: 0, at: .ms(0), bits: most)
    machine.ended(1, .closedHere, at: .ms(50), bits: most)
    machine.finishRound(up: true, at: 100)
    machine.worked(2)
    machine.elapsed(to: .ms(10_000), bits: most)
    #expect(machine.take() == [.proven(2)])
  }

  @Test(arguments: [nil, 1_000_000], [0, 1])
  func `links that drain soon are followed by pauses that grow`(hint: Int64?, alternatives: Int) {
    var machine = LinkMachine.up([0, 1])
    var attempt: LinkMachine.AttemptID = 1
    var now: Int64 = 0
    var pauses: [Int64] = []
    for life: Int64 in Array(repeating: 100, count: 20) + [60_000, 100] {
      now += life
      machine.worked(attempt)
      machine.peerLeft(
        attempt, draining, hint: hint, alternatives: alternatives, at: .ms(now), bits: most)
      let begin = now
      while true {
        if case .waiting(let until) = machine.state {
          now = (until - .start) / 1_000_000
          machine.elapsed(to: until, bits: most)
        }
        if case .connecting = machine.state { break }
      }
      pauses.append(now - begin)
      attempt = machine.finishRound(up: true, at: now)
    }
    #expect(pauses[..<8].allSatisfy { $0 <= 1_000 }, "\(pauses)")
    let grown: [Int64] = [1_000, 2_000, 4_000, 8_000, 16_000] + Array(repeating: 30_000, count: 7)
    #expect(Array(pauses[8..<20]) == grown, "\(pauses)")
    #expect(pauses[20...].allSatisfy { $0 <= 1_000 }, "\(pauses)")
  }

  @Test func `servers that send each other their clients do not keep them from slowing down`() {
    var machine = LinkMachine.make()
    machine.start(at: .ms(0), bits: most)
    var now: Int64 = 0
    var windows: [Int64] = []
    for _ in 0..<20 {
      machine.resolved(round: machine.round, addresses: 1, at: .ms(now), bits: most)
      guard case .connect(let attempt, _)? = machine.take().last else {
        Issue.record("no attempt")
        return
      }
      machine.turnedAway(attempt, hint: nil, alternatives: 1, at: .ms(now))
      machine.failed(attempt, at: .ms(now), bits: most)
      windows.append((machine.takeWait()?.window ?? 0) / 1_000_000)
      now = (machine.deadline - .start) / 1_000_000
      machine.elapsed(to: .ms(now), bits: most)
    }
    #expect(windows.last == 30_000)
    #expect(windows[0] == 1000 && windows == windows.sorted())
  }

  @Test func `a goaway of a link that was left before begins nothing`() {
    var machine = LinkMachine.up([0, 1])
    machine.pathChanged(at: .ms(0), bits: most)
    let second = machine.finishRound(up: true, at: 0)
    machine.peerLeft(1, draining, hint: 5, alternatives: 3, at: .ms(1), bits: most)
    #expect(machine.take() == [] && machine.state == .connected(second))
    #expect(machine.alternativesNamed == 0)
  }

  @Test func `a drain abandons the round to the same server, and no other`() {
    var same = LinkMachine.up([0])
    same.pathChanged(at: .ms(0), bits: most)
    same.resolved(round: 2, addresses: 1, at: .ms(0), bits: most)
    _ = same.take()
    same.peerLeft(1, draining, hint: 4_000_000_000, alternatives: 0, at: .ms(1), bits: most)
    #expect(same.take() == [.retire(1), .abandon(2, .left)])
    #expect(same.state == .waiting(.ms(4001)))
  }

  // MARK: The network

  @Test func `another network ends a pause and keeps what was learned`() {
    var machine = LinkMachine.make()
    machine.start(at: .ms(0), bits: most)
    machine.finishRound(up: false, at: 0)
    machine.elapsed(to: .ms(1000), bits: most)
    machine.finishRound(up: false, at: 1000)
    #expect(machine.state == .waiting(.ms(3000)))
    machine.pathChanged(at: .ms(1001), bits: most)
    #expect(machine.take() == [.resolve(.listed(0), round: 3)])
    machine.finishRound(up: false, at: 1001)
    #expect(machine.failures == 3 && machine.state == .waiting(.ms(5001)))
  }

  @Test func `attempts over the old network are abandoned`() {
    var machine = LinkMachine.make()
    machine.start(at: .ms(0), bits: most)
    machine.resolved(round: 1, addresses: 3, at: .ms(0), bits: most)
    machine.elapsed(to: .ms(250), bits: most)
    _ = machine.take()
    machine.pathChanged(at: .ms(300), bits: most)
    #expect(
      machine.take() == [.abandon(1, .left), .abandon(2, .left), .resolve(.listed(0), round: 2)])
    machine.resolved(round: 1, addresses: 3, at: .ms(301), bits: most)
    machine.failed(1, at: .ms(301), bits: most)
    machine.established(2, provenAfter: 1, at: .ms(301), bits: most)
    #expect(machine.take() == [.abandon(2, .left)])
    #expect(machine.state == .connecting(.listed(0)) && machine.failures == 0)
  }

  @Test func `a link that is up is asked for a sign of life, and serves until the next is made`() {
    var machine = LinkMachine.up([0, 1])
    machine.pathChanged(at: .ms(0), bits: most)
    #expect(machine.take() == [.probe(1), .resolve(.listed(0), round: 2)])
    #expect(machine.state == .migrating(1, to: .listed(0)))
    machine.finishRound(up: false, at: 10)
    #expect(machine.state == .connected(1) && machine.failures == 0)
    machine.pathChanged(at: .ms(20), bits: most)
    #expect(machine.take().first == .probe(1))
    machine.resolved(round: 3, addresses: 1, at: .ms(20), bits: most)
    #expect(machine.take() == [.connect(2, address: 0)])
    machine.established(2, provenAfter: 1, at: .ms(21), bits: most)
    #expect(machine.take() == [.use(2), .retire(1)])
  }

  @Test func `nothing changes for a client that wants no link`() {
    var machine = LinkMachine.make()
    machine.pathChanged(at: .ms(0), bits: most)
    machine.suspend(lingering: 0, at: .ms(0))
    machine.pathChanged(at: .ms(0), bits: most)
    machine.resume(at: .ms(0), bits: most)
    #expect(machine.take() == [] && machine.state == .idle)
  }

  // MARK: Suspension

  @Test func `a suspended client has no link, no pause and no timer`() {
    var up = LinkMachine.up([0, 1])
    up.suspend(lingering: 0, at: .ms(5))
    #expect(up.take() == [.retire(1), .expire(1)])
    up.ended(1, .left, at: .ms(5), bits: most)
    var waiting = LinkMachine.make()
    waiting.start(at: .ms(0), bits: most)
    waiting.finishRound(up: false, at: 0)
    waiting.suspend(lingering: 0, at: .ms(5))
    for machine in [up, waiting] {
      var machine = machine
      #expect(machine.state == .suspended && machine.deadline == .distantFuture)
      machine.start(at: .ms(6), bits: most)
      machine.elapsed(to: .ms(1_000_000), bits: most)
      #expect(machine.take() == [])
      let failures = machine.failures
      machine.resume(at: .ms(1_000_000), bits: most)
      machine.resume(at: .ms(1_000_000), bits: most)
      #expect(machine.take().count == 1)
      #expect(machine.state == .connecting(machine.target) && machine.failures == failures)
    }
  }

  @Test func `what is in flight may be answered before the suspension`() {
    var machine = LinkMachine.up([0])
    machine.suspend(lingering: 3_000_000_000, at: .ms(0))
    #expect(machine.take() == [.retire(1)])
    #expect(machine.deadline == .ms(3000))
    machine.elapsed(to: .ms(3000), bits: most)
    #expect(machine.take() == [.expire(1)])
  }

  @Test func `a client that was suspended before it began begins when it is wanted and resumed`() {
    var machine = LinkMachine.make()
    machine.suspend(lingering: 0, at: .ms(0))
    machine.start(at: .ms(1), bits: most)
    #expect(machine.take() == [])
    machine.resume(at: .ms(2), bits: most)
    #expect(machine.take() == [.resolve(.listed(0), round: 1)])
  }

  // MARK: Other servers

  private func entries(_ count: Int) -> [ServerList.Entry] {
    (0..<count).map { ServerList.Entry(priority: $0, weight: 1) }
  }

  @Test func `a link to a server that is not in the list any more takes nothing new`() {
    var machine = LinkMachine.up([0, 1])
    machine.switchServers(to: entries(2), kept: [nil, nil], at: .ms(0), bits: most)
    #expect(machine.take() == [.retire(1), .resolve(.listed(0), round: 2)])
    #expect(machine.state == .connecting(.listed(0)))
    #expect(machine.deadline == .ms(1000), "the look-up's; the old link lingers longer")
  }

  @Test func `a link to a server that is in both lists stays`() {
    var machine = LinkMachine.up([0, 1]) { $0.preferredRetry = .seconds(10) }
    machine.switchServers(to: entries(3), kept: [nil, 0, nil], at: .ms(0), bits: most)
    #expect(machine.take() == [] && machine.state == .connected(1))
    // But a better one is there now.
    machine.elapsed(to: .ms(12_000), bits: most)
    #expect(machine.take() == [.resolve(.listed(0), round: 2)])
  }

  @Test func `a round to a server that is not in the list any more is abandoned`() {
    var machine = LinkMachine.make([0, 1])
    machine.start(at: .ms(0), bits: most)
    machine.resolved(round: 1, addresses: 1, at: .ms(0), bits: most)
    _ = machine.take()
    var fork = machine
    machine.switchServers(to: entries(1), kept: [nil], at: .ms(1), bits: most)
    #expect(machine.take() == [.abandon(1, .left), .resolve(.listed(0), round: 2)])
    machine.established(1, provenAfter: 1, at: .ms(2), bits: most)
    #expect(machine.take() == [.abandon(1, .left)])
    fork.switchServers(to: entries(2), kept: [nil, 0], at: .ms(1), bits: most)
    #expect(fork.take() == [] && fork.state == .connecting(.listed(1)))
  }

  @Test func `a client fails back, though the network changed and the server asked to stay away`() {
    var machine = LinkMachine.up([0]) { $0.preferredRetry = .seconds(10) }
    // From the server that the first one has named.
    machine.peerLeft(1, .goneAway(.draining), hint: nil, alternatives: 1, at: .ms(0), bits: most)
    machine.finishRound(up: true, at: 0)
    machine.ended(1, .closedHere, at: .ms(1), bits: most)
    #expect(machine.state == .connected(2))
    machine.elapsed(to: .ms(12_000), bits: most)
    #expect(machine.take() == [.resolve(.listed(0), round: 3)])
    machine.resolved(round: 3, addresses: 1, at: .ms(12_000), bits: most)
    machine.prepare(3, at: .ms(12_000))
    machine.pathChanged(at: .ms(12_001), bits: most)
    machine.turnedAway(3, hint: 5_000_000_000, alternatives: 0, at: .ms(12_002))
    machine.heldLeft(3, at: .ms(12_002), bits: most)
    #expect(machine.take().last == .retire(3) && machine.state == .connected(2))
    machine.elapsed(to: .ms(24_002), bits: most)
    #expect(machine.take() == [.expire(3), .resolve(.listed(0), round: 4)])
  }

  @Test func `a look-up that was asked for and not begun goes where its server stands now`() {
    var machine = LinkMachine.up([0, 1, 2])
    machine.peerLeft(1, .goneAway(.draining), hint: nil, alternatives: 0, at: .ms(0), bits: most)
    #expect(machine.target == .listed(1))
    var fork = machine
    machine.switchServers(to: entries(1), kept: [1], at: .ms(0), bits: most)
    #expect(machine.take() == [.retire(1), .resolve(.listed(0), round: 2)])
    #expect(machine.nextEffect() == nil)
    fork.switchServers(to: entries(1), kept: [2], at: .ms(0), bits: most)
    #expect(fork.take() == [.retire(1), .resolve(.listed(0), round: 3)])
  }

  @Test func `new servers are tried at once, known ones when their time has come`() {
    var machine = LinkMachine.make([0])
    machine.start(at: .ms(0), bits: most)
    machine.finishRound(up: false, at: 0)
    var fork = machine
    machine.switchServers(to: entries(1), kept: [0], at: .ms(1), bits: most)
    #expect(machine.state == .waiting(.ms(1000)) && machine.failures == 1)
    fork.switchServers(to: entries(2), kept: [nil, 0], at: .ms(1), bits: most)
    #expect(fork.take() == [.resolve(.listed(0), round: 2)] && fork.failures == 0)
  }

  @Test func `a suspended or idle client takes other servers too`() {
    for suspends in [true, false] {
      var machine = LinkMachine.make([0])
      if suspends { machine.suspend(lingering: 0, at: .ms(0)) }
      machine.switchServers(to: entries(2), kept: [nil, nil], at: .ms(0), bits: most)
      #expect(machine.take() == [])
      if suspends { machine.resume(at: .ms(1), bits: most) }
      machine.start(at: .ms(1), bits: most)
      #expect(machine.take() == [.resolve(.listed(0), round: 1)])
    }
  }
}
