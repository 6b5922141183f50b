// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTesting

/// A random world that depends on a seed: servers, clients, at least 200 requests over at least ten
/// virtual minutes, and faults.
///
/// One to three servers, each in its own process, and one to three clients send each other requests
/// in every style: with bodies of up to 300 kB, deadlines, cancels and priorities, in bursts with
/// idle times between them. Meanwhile faults of a profile are injected. Then the faults stop, and
/// all clients have to recover within a computed time. An ``Oracle`` watches the whole run.
///
/// ```swift
/// let report = try await Scenario(seed: 7, profile: .hostileNetwork).run()
/// precondition(report.isGood, "\(report.findings) \(report.replayCommand)")
/// ```
package struct Scenario: Hashable, Sendable {
  /// The seed, which determines the run together with the profile.
  package let seed: UInt64
  /// The profile from which faults are drawn.
  package let profile: FaultProfile

  /// Makes the scenario of a seed and a profile. Equal ones make the same scenario.
  package init(seed: UInt64, profile: FaultProfile = .default) {
    self.seed = seed
    self.profile = profile
  }

  /// Runs the scenario in a new simulation. With `recording`, the report has a timeline. With
  /// `security`, all connections are secured.
  ///
  /// Throws only if the system has no thread or descriptor left for the run. Failures within the
  /// scenario are among the findings.
  package func run(
    recording: Bool = false, security: ScenarioSecurity? = nil
  ) async throws -> ScenarioReport {
    let stage = ScenarioStage(self, recording: recording, security: security)
    defer { stage.clear() }
    do {
      try await stage.simulation.run { try await stage.play() }
    } catch let error as SimulationError {
      stage.oracle.found(.comesToItsEnd, "\(error)")
    }
    return stage.report
  }

  /// Runs the scenario and blocks the thread, for programs that run several on threads.
  package func runBlocking(
    recording: Bool = false, security: ScenarioSecurity? = nil
  ) throws -> ScenarioReport {
    let stage = ScenarioStage(self, recording: recording, security: security)
    defer { stage.clear() }
    do {
      try stage.simulation.runBlocking { try await stage.play() }
    } catch let error as SimulationError {
      stage.oracle.found(.comesToItsEnd, "\(error)")
    }
    return stage.report
  }
}
