// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkScenarios
@testable import LongLinkTesting

/// Worlds drawn from seeds, in which every promise has to hold.
@Suite struct ScenarioTests {
  // A debug build takes ten times as long as the many seeds of `make simulate` do.
  @Test(arguments: 0..<16 as Range<UInt64>)
  func `every promise is kept, whatever goes wrong`(_ seed: UInt64) async throws {
    try await run(Scenario(seed: seed))
  }

  @Test(arguments: FaultProfile.all.filter { $0 != .default }, 0..<2 as Range<UInt64>)
  func `every promise is kept under every profile`(
    _ profile: FaultProfile, _ seed: UInt64
  ) async throws {
    try await run(Scenario(seed: seed, profile: profile))
  }

  // A reset in the client's name reaches the server alone, and the stream has no timeout.
  @Test(arguments: [1_211, 1_306] as [UInt64])
  func `a stream ends whose short link its server has lost without a word`(
    _ seed: UInt64
  ) async throws {
    try await run(Scenario(seed: seed, profile: .twoWays))
  }

  private func run(_ scenario: Scenario) async throws {
    let report = try await scenario.run()
    #expect(report.isGood, "\(report.findings) \(report.replayCommand)")
    #expect(report.requests >= 200, "seed \(scenario.seed)")
    #expect(report.streams > 10 && report.items > 100, "seed \(scenario.seed)")
    #expect(report.virtualTime >= .seconds(600), "seed \(scenario.seed)")
    // A client may have short links alone.
    let least = scenario.profile.hasShortLinks ? 0 : scenario.profile.refusesCredentials ? 1 : 10
    #expect(report.renewals >= least, "seed \(scenario.seed): \(report.renewals)")
    let faults = report.faults.values.reduce(0, +)
    #expect(scenario.profile.count.contains(faults), "seed \(scenario.seed)")
  }

  // The seeds are some in which a server crashes at each point of a request.
  @Test func `requests run once, whenever a server crashes`() async throws {
    var total = OnceTotal()
    for seed in [0, 1, 2, 3] as [UInt64] {
      let report = try await Scenario(seed: seed, profile: .once).run()
      #expect(report.isGood, "\(report.findings) \(report.replayCommand)")
      #expect(report.once.requests >= 90 && report.once.runs > 20, "seed \(seed)")
      total.add(report.once)
    }
    for point in OncePoint.allCases {
      #expect(total.crashes[point, default: 0] > 0, "no crash after the \(point)")
    }
    #expect(total.replays > 0)
  }

  @Test func `a seed replays with requests that run once`() async throws {
    let scenario = Scenario(seed: 7, profile: .once)
    let first = try await scenario.run()
    let second = try await scenario.run()
    #expect(first.traceHash == second.traceHash && first.once == second.once)
  }

  @Test func `a seed replays`() async throws {
    let scenario = Scenario(seed: 1_415, profile: .hostileNetwork)
    let first = try await scenario.run()
    let second = try await scenario.run(recording: true)
    #expect(first.traceHash == second.traceHash)
    #expect(first.traceCount == second.traceCount)
    #expect(first.faults == second.faults)
    #expect(first.succeeded == second.succeeded)
  }

  @Test func `another seed gives another scenario`() async throws {
    let first = try await Scenario(seed: 1).run()
    let second = try await Scenario(seed: 2).run()
    #expect(first.traceHash != second.traceHash)
  }

  @Test func `a scenario can be run by a blocking call`() async throws {
    let report = try await Scenario(seed: 3).run()
    let blocking = try Scenario(seed: 3).runBlocking()
    #expect(report.traceHash == blocking.traceHash)
  }

  @Test func `a scenario that has ended leaves nothing in memory`() async throws {
    weak var network: SharedNetwork?
    func run() throws {
      let stage = ScenarioStage(Scenario(seed: 4), recording: true)
      network = stage.simulation.networkState
      try stage.simulation.runBlocking { try await stage.play() }
      stage.clear()
      #expect(stage.report.isGood)
    }
    try run()
    #expect(network == nil)
  }

  @Test func `streams of all shapes are drawn`() {
    let plan = ScenarioPlan(seed: 1, profile: .default)
    #expect(Set(plan.streams.map(\.key)).count == plan.streams.count)
    let plans = (0..<50 as Range<UInt64>).flatMap {
      ScenarioPlan(seed: $0, profile: .default).streams
    }
    #expect(Set(plans.map(\.shape)).count == 3)
    #expect(Set(plans.map(\.order)).count == StreamPlan.Order.allCases.count)
    #expect(plans.contains { $0.isFromServer } && plans.contains { !$0.isFromServer })
    #expect(plans.contains { $0.responseItems.sizes == .large })
    // An item depends on its stream, its side and its number alone.
    let stream = plan.streams[0]
    #expect(stream.item(3, from: .requester) == stream.item(3, from: .requester))
  }

  @Test func `profiles are found by their names`() {
    for profile in FaultProfile.all { #expect(FaultProfile(named: profile.name) == profile) }
    #expect(FaultProfile(named: "none such") == nil)
  }

  @Test func `only the faults of a profile are drawn`() async throws {
    let profile = FaultProfile(name: "two", rates: [.lostLink: 1, .pause: 2], count: 9...9)
    let report = try await Scenario(seed: 5, profile: profile).run()
    #expect(report.isGood, "\(report.findings)")
    #expect(Set(report.faults.keys).isSubset(of: [.lostLink, .pause]))
    #expect(report.faults.values.reduce(0, +) == 9)
  }
}
