// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// A world drawn from a seed: servers, clients, at least 200 requests over at least ten virtual
/// minutes, and faults.
///
/// One to three servers, each a process of its own, and as many clients ask each other in every
/// style, with bodies of up to 300 kB, deadlines, cancels and priorities, in bursts with idle times
/// between them, while faults of a profile are injected. Then the faults stop, and everything has
/// to be well again within a computed time. An ``Oracle`` watches all of it.
///
/// ```swift
/// let report = try await Scenario(seed: 7, profile: .hostileNetwork).run()
/// precondition(report.isGood, "\(report.findings) \(report.replayCommand)")
/// ```
public struct Scenario: Hashable, Sendable {
  /// What determines all of it, together with the profile.
  public let seed: UInt64
  /// Which faults are drawn.
  public let profile: FaultProfile

  /// Makes the scenario of a seed; the same seed and profile make the same one.
  public init(seed: UInt64, profile: FaultProfile = .default) {
    self.seed = seed
    self.profile = profile
  }

  /// Runs it in a simulation of its own. `recording` keeps what is needed to draw a timeline.
  ///
  /// Throws only where the system has no thread or descriptor left for the run; what goes wrong in
  /// the scenario stands among the findings.
  public func run(recording: Bool = false) async throws -> ScenarioReport {
    let stage = ScenarioStage(self, recording: recording)
    defer { stage.clear() }
    do {
      try await stage.simulation.run { try await stage.play() }
    } catch let error as SimulationError {
      stage.oracle.found(.comesToItsEnd, "\(error)")
    }
    return stage.report
  }

  /// Runs it and blocks the thread meanwhile, for programs that run several on threads.
  public func runBlocking(recording: Bool = false) throws -> ScenarioReport {
    let stage = ScenarioStage(self, recording: recording)
    defer { stage.clear() }
    do {
      try stage.simulation.runBlocking { try await stage.play() }
    } catch let error as SimulationError {
      stage.oracle.found(.comesToItsEnd, "\(error)")
    }
    return stage.report
  }
}
