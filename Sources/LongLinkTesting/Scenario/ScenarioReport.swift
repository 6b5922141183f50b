// SPDX-License-Identifier: Apache-2.0

/// What came of a scenario.
public struct ScenarioReport: Sendable {
  /// The scenario that was run.
  public let scenario: Scenario
  /// The broken promises; none where all went well.
  public let findings: [OracleFinding]
  /// A hash over all that happened: two runs that agree in it did the same.
  public let traceHash: UInt64
  /// How many events the hash is over.
  public let traceCount: UInt64
  /// How long it took in virtual time.
  public let virtualTime: Duration
  /// How many requests were made.
  public let requests: Int
  /// How many of them succeeded.
  public let succeeded: Int
  /// How many faults of each kind were injected. A fault without a victim is not counted.
  public let faults: [FaultKind: Int]
  /// What happened, to be drawn; nil unless the run was recorded.
  public let timeline: SimulationTimeline?

  /// Whether every promise was kept.
  public var isGood: Bool { findings.isEmpty }

  /// The command that runs the scenario again and draws it.
  public var replayCommand: String {
    "longlink simulate replay --seed \(scenario.seed) --profile \(scenario.profile.name)"
  }
}
