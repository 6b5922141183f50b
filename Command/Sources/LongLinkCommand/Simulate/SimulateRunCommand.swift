// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import LongLinkCommandSupport
import LongLinkScenarios

/// `longlink simulate run`.
struct SimulateRunCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Runs scenarios drawn from seeds and stops at the first broken promise.",
    discussion: """
      Each seed determines one to three servers and clients, at least 200 requests over at least \
      ten virtual minutes, some of them streams, and faults. Oracles check that each request ends \
      once, that delivery is reported truthfully, that items arrive in order, that dead peers are \
      detected, that nothing leaks, and more. At the first broken promise the run stops with exit \
      code 1, and prints the command that replays the seed.

      SIGINT (Ctrl-C) stops early, prints the summary so far and exits with code 130.
      """)

  @Option(help: "One seed, or a range FROM..TO that includes both.")
  var seeds: SeedRange

  @Option(
    help: """
      The profile of faults: default, calm, hostile-network, restarts, slow-peers, two-ways, \
      credentials or once.
      """)
  var profile = "default"

  @Flag(help: "Secure all connections with TLS, and replace certificates meanwhile.")
  var tls = false

  @Option(help: "How many run at once (default: the number of cores).")
  var jobs: Int?

  @Flag(help: "Continue after a broken promise, and list all seeds that broke one.")
  var keepGoing = false

  @Flag(help: "Print the outcome as one JSON object.")
  var json = false

  func run() async throws {
    let jobs = jobs ?? ProcessInfo.processInfo.activeProcessorCount
    guard jobs > 0 else { throw Output.usageError("--jobs has to be above 0") }
    let signals = TerminationSignals()
    let batch = ScenarioBatch(
      seeds: seeds.range, profile: try FaultProfile.named(profile),
      security: tls ? .trial() : nil, keepsGoing: keepGoing)
    let isTerminal = isatty(STDERR_FILENO) == 1
    let (result, signal) = await signals.cancelling {
      await batch.run(jobs: jobs) { total in
        if !json { SimulateRunCommand.show(total, of: seeds.range.count, isTerminal: isTerminal) }
      }
    }
    let total = try result.get()
    if isTerminal, !json { try? FileHandle.standardError.write(contentsOf: Data("\n".utf8)) }
    if json {
      try Output.line(total.json(profile: profile))
    } else {
      try Output.line(total.summary)
    }
    if !json {
      for failure in total.failures {
        for finding in failure.findings.prefix(20) { try Output.line("  \(finding)") }
        try Output.line("replay it: \(failure.replayCommand)")
      }
    }
    if let signal { throw ExitCode.signal(signal) }
    if !total.failures.isEmpty { throw ExitCode(ExitStatus.failure) }
  }

  private static func show(_ total: ScenarioTotal, of count: Int, isTerminal: Bool) {
    let line = "\(total.seeds)/\(count) seeds  \(total.speed)  \(total.faultsText)"
    let text =
      isTerminal ? "\r\u{1B}[K\(line.prefix(200))" : "\(line)\n"
    try? FileHandle.standardError.write(contentsOf: Data(text.utf8))
  }
}

/// Seeds as an argument: `FROM..TO`, or one.
struct SeedRange: ExpressibleByArgument {
  let range: ClosedRange<UInt64>

  init?(argument: String) {
    if let seed = UInt64(argument) {
      range = seed...seed
      return
    }
    guard let dots = argument.range(of: ".."),
      let first = UInt64(argument[..<dots.lowerBound]),
      let last = UInt64(argument[dots.upperBound...]), first <= last, last - first < 1 << 32
    else { return nil }
    range = first...last
  }
}
