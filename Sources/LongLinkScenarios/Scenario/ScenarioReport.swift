// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// The result of a scenario.
package struct ScenarioReport: Sendable {
  /// The scenario that was run.
  package let scenario: Scenario
  /// Whether the connections of the run were secured.
  package let isSecured: Bool
  /// The broken promises; empty after a good run.
  package let findings: [OracleFinding]
  /// A hash of all events. Two runs with the same hash did the same. The hash of a secured run has
  /// the sizes of what was written, and not the bytes, which differ from run to run.
  package let traceHash: UInt64
  /// The number of events in the hash.
  package let traceCount: UInt64
  /// The virtual time that the run took.
  package let virtualTime: Duration
  /// The number of requests made.
  package let requests: Int
  /// The number of requests that succeeded.
  package let succeeded: Int
  /// The number of streams, which are among the requests.
  package let streams: Int
  /// The number of streams of which the items of one or both sides were read to their end.
  package let completedStreams: Int
  /// The number of items that were read, on both sides.
  package let items: Int
  /// The number of credentials that were renewed on their connections.
  package let renewals: Int
  /// What has happened to the requests that run once.
  package let once: OnceTotal
  /// The number of injected faults by kind. A fault without a victim is not counted.
  package let faults: [FaultKind: Int]
  /// The timeline of the run; nil unless the run was recorded.
  package let timeline: SimulationTimeline?
  /// What the loops of the last processes have recorded; empty unless the run was recorded, and
  /// without the trait `Operations`.
  package let recordings: [RecorderSnapshot]

  /// Whether no promise was broken.
  package var isGood: Bool { findings.isEmpty }

  /// The command that repeats the run and draws its timeline.
  package var replayCommand: String {
    "longlink simulate replay --seed \(scenario.seed) --profile \(scenario.profile.name)"
      + (isSecured ? " --tls" : "")
  }
}
