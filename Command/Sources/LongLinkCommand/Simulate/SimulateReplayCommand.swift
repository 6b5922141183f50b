// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import LongLinkCommandSupport
import LongLinkCore
import LongLinkScenarios

/// `longlink simulate replay`.
struct SimulateReplayCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "replay",
    abstract: "Runs the scenario of one seed again and draws what happened.",
    discussion: """
      Prints a line for each frame, fault, socket and change of state, with lanes for the clients \
      and servers. ● is where a frame was sent and ▶ or ◀ where it arrived, ✕ one that never did; \
      ✱ is a fault, ○ a socket, ◆ a state. Exit code 1 if a promise was broken.
      """)

  @Option(help: "The seed.")
  var seed: UInt64

  @Option(
    help: """
      The profile of faults: default, calm, hostile-network, restarts, slow-peers, two-ways, \
      credentials or once.
      """)
  var profile = "default"

  @Flag(help: "Secure all connections with TLS, and replace certificates meanwhile.")
  var tls = false

  @Option(help: "Begin the drawing at this virtual second.")
  var from: Double = 0

  @Option(help: "End the drawing at this virtual second.")
  var to: Double?

  @Option(help: "Also write the drawing to this file, as SVG, cut off after 1,000 events.")
  var svg: String?

  @Flag(help: "Draw pings and pongs too.")
  var pings = false

  @Flag(help: "Print no drawing, only the result.")
  var quiet = false

  func run() async throws {
    guard from >= 0, from < 1e9, to.map({ $0 >= from && $0 < 1e9 }) ?? true else {
      throw Output.usageError("--from and --to must be seconds, and --from the earlier one")
    }
    let scenario = Scenario(seed: seed, profile: try FaultProfile.named(profile))
    let report = try await scenario.run(recording: true, security: tls ? .trial() : nil)
    if let all = report.timeline?.cut(fromSecond: from, toSecond: to ?? 1e9) {
      let (timeline, omitted) = pings ? (all, 0) : all.withoutHeartbeats
      if !quiet { try Output.write(Array(timeline.text().utf8)) }
      if let svg {
        try FileProblem.naming(svg) {
          try Data(timeline.svg().utf8).write(to: URL(fileURLWithPath: svg))
        }
      }
      if omitted > 0, !quiet || svg != nil {
        try Output.line("\(omitted.grouped) pings and pongs are left out; --pings draws them")
      }
    }
    try Output.line(
      """
      seed \(seed), profile \(profile)\(tls ? ", TLS" : ""): \(report.requests) requests, \
      \(report.succeeded) succeeded, \(report.virtualTime.inSeconds) of virtual time
      \(report.streams) streams among them, \(report.completedStreams) read to their end, \
      \(report.items) items read
      \(report.faults.lines.joined(separator: "\n"))
      trace \(String(format: "%016llx", report.traceHash)) of \(report.traceCount) events
      """)
    guard !report.isGood else {
      try Output.line("all promises were kept")
      return
    }
    for finding in report.findings { try Output.line("broken: \(finding)") }
    throw ExitCode(ExitStatus.failure)
  }
}

extension SimulationTimeline {
  fileprivate func cut(fromSecond start: Double, toSecond end: Double) -> SimulationTimeline {
    cut(
      from: LinkInstant(nanoseconds: Int64(start * 1e9)),
      to: LinkInstant(nanoseconds: Int64(end * 1e9)))
  }
}
