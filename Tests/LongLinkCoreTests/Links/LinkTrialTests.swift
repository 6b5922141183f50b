// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// When a long link takes requests only after a trial, how long that lasts, and what ends it.
@Suite struct LinkTrialTests {
  private static let second: Int64 = 1_000_000_000

  /// A machine whose long link to the first server was cut, at 0 ms.
  private func suspicious(ways: Int = 1, connectBound: Int64 = 10 * second) -> WayMachine {
    var machine = WayMachine(
      settings: WayMachine.Settings(
        hasLongLink: true, ways: ways, connectBound: connectBound, reconnect: ReconnectPolicy()))
    cut(&machine)
    return machine
  }

  /// The link to a server takes requests, and is cut.
  private func cut(
    _ machine: inout WayMachine, on server: Int? = 0, hasRequests: Bool = true,
    life: Int64 = 60 * second
  ) {
    machine.connected()
    machine.lost(at: .ms(0))
    machine.wasCut(on: server, hasRequests: hasRequests, life: life)
  }

  /// How long a link has to live that is made now, in milliseconds; nil without a trial.
  private func trial(
    _ machine: WayMachine, on server: Int? = 0, validFor validity: Int64? = nil
  ) -> Int64? {
    var fork = machine
    guard fork.beginTrial(of: 9, on: server, validFor: validity, at: .ms(0)) else { return nil }
    return (fork.deadline - .ms(0)) / 1_000_000
  }

  @Test func `after a link that was cut, requests take short links, and the next stands a trial`() {
    var machine = suspicious()
    #expect(machine.carriesRequests)
    let begins = machine.beginTrial(of: 2, on: 0, validFor: nil, at: .ms(2_000))
    #expect(begins)
    #expect(machine.isTrying && machine.carriesRequests)
    #expect(machine.deadline == .ms(12_000))
    machine.ponged(2)
    machine.elapsed(to: .ms(11_999))
    #expect(machine.take().isEmpty)
    machine.elapsed(to: .ms(12_000))
    #expect(machine.take() == [.ping(2)])
    // It takes requests only when it has answered.
    #expect(machine.isTrying && machine.deadline == .distantFuture)
    machine.ponged(1)
    #expect(machine.take().isEmpty)
    machine.ponged(2)
    #expect(machine.take() == [.passed(2)])
    machine.connected()
    #expect(!machine.isTrying && !machine.carriesRequests)
  }

  @Test func `a link that ends before it has answered has failed`() {
    var machine = suspicious()
    _ = machine.beginTrial(of: 2, on: 0, validFor: nil, at: .ms(0))
    machine.elapsed(to: .ms(10_000))
    machine.trialFailed(2)
    machine.ponged(2)
    #expect(machine.take() == [.ping(2)] && !machine.isTrying)
    #expect(trial(machine) == 10_000)
  }

  @Test func `each further cut doubles the trial, up to ten minutes`() {
    var machine = suspicious()
    for seconds: Int64 in [10, 20, 40, 80, 160, 320, 600, 600] {
      #expect(trial(machine) == seconds * 1_000)
      cut(&machine)
    }
    var slow = suspicious(connectBound: 400 * Self.second)
    #expect(trial(slow) == 400_000)
    cut(&slow)
    #expect(trial(slow) == 600_000)
    #expect(trial(suspicious(connectBound: .max)) == 600_000)
  }

  @Test func `a link that has answered ends the suspicion`() {
    var machine = suspicious()
    cut(&machine)
    machine.connected()
    machine.answered()
    machine.lost(at: .ms(0))
    machine.roundFailed()
    #expect(trial(machine) == nil)
    cut(&machine)
    #expect(trial(machine) == 10_000)
  }

  @Test func `a link without requests that lived for longer than a connect takes shows nothing`() {
    for (hasRequests, life) in [(true, 60), (true, 1), (false, 60), (false, 1)] as [(Bool, Int64)] {
      var machine = suspicious()
      machine.pathChanged(at: .ms(0))
      cut(&machine, hasRequests: hasRequests, life: life * Self.second)
      let isShown = hasRequests || life < 10
      #expect(machine.carriesRequests == isShown)
      machine.roundFailed()
      #expect((trial(machine) != nil) == isShown)
    }
  }

  @Test func `a credential does not expire during a trial`() {
    let machine = suspicious()
    #expect(trial(machine, validFor: 20 * Self.second) == 10_000)
    #expect(trial(machine, validFor: 8 * Self.second) == 6_000)
  }

  @Test func `the cuts of one server do not lengthen the trials of another`() {
    var machine = suspicious()
    for _ in 0..<5 { cut(&machine) }
    cut(&machine, on: nil)
    #expect(trial(machine) == 320_000)
    // But the network may be what cuts.
    #expect(trial(machine, on: 1) == 10_000)
    cut(&machine, on: nil)
    #expect(trial(machine, on: nil) == 20_000)
  }

  @Test func `other servers and another network begin anew`() {
    var machine = suspicious()
    var switched = machine
    switched.serversChanged()
    #expect(trial(switched) == nil)
    machine.pathChanged(at: .ms(0))
    machine.roundFailed()
    #expect(trial(machine) == nil)
  }

  // MARK: Where short links do not work

  @Test func `a trial ends where no short way is left`() {
    var machine = suspicious()
    machine.want(1)
    _ = machine.take()
    _ = machine.beginTrial(of: 2, on: 0, validFor: nil, at: .ms(2_000))
    machine.ended(WayMachine.idBit | 1, .failed, at: .ms(3_000), bits: { 0 })
    #expect(machine.take() == [.passed(2)] && !machine.isTrying)
    // While all ways have failed, a link is used at once.
    #expect(trial(machine) == nil)
  }

  @Test(arguments: 1...2)
  func `a trial ends where three requests in a row get no answer`(_ ways: Int) {
    var machine = suspicious(ways: ways)
    _ = machine.beginTrial(of: 2, on: 0, validFor: nil, at: .ms(0))
    for id in 1...3 as ClosedRange<UInt32> {
      #expect(machine.isTrying)
      machine.want(1)
      _ = machine.take()
      machine.opened(WayMachine.idBit | id)
      machine.ended(WayMachine.idBit | id, .silent, at: .ms(0), bits: { 0 })
    }
    #expect(machine.take() == [.passed(2)] && !machine.isTrying)
    // Without another way, the next link need not wait either.
    #expect((trial(machine) == nil) == (ways == 1))
  }

  @Test func `a trial can be ended before its time`() {
    var machine = suspicious()
    machine.endTrial()
    #expect(machine.take().isEmpty)
    _ = machine.beginTrial(of: 2, on: 0, validFor: nil, at: .ms(0))
    machine.endTrial()
    #expect(machine.take() == [.passed(2)] && machine.deadline == .distantFuture)
  }
}
