// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import LongLinkCommandSupport
import LongLinkCore

/// `longlink simulate storm`.
struct StormCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "storm",
    abstract: "Shows how clients come back after they all lost their server at once.",
    discussion: """
      Each client makes the real client's decisions, in virtual time. The peaks are per whole \
      second; the even rate is that of all clients spread evenly over the window. Attempts while \
      the server is down count too. The three other policies are for comparison.
      """)

  enum Policy: String, ExpressibleByArgument, CaseIterable {
    /// Spread over the window.
    case spread
    /// A client's default.
    case standard

    func reconnect(window: Duration) -> ReconnectPolicy {
      switch self {
      case .spread: .spread(over: window)
      case .standard: ReconnectPolicy()
      }
    }
  }

  @Option(help: "How many clients there are (default: 100000).", transform: Values.count)
  var clients = 100_000

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("How long the server is down (default: 60).", valueName: "seconds"),
    transform: StormCommand.outage)
  var outage: Duration = .seconds(60)

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "The time over which clients spread (default: 30).", valueName: "seconds"),
    transform: StormCommand.window)
  var window: Duration = .seconds(30)

  @Option(
    help: """
      spread: delays are spread over the window; standard: a client's default delays (default: \
      spread).
      """)
  var policy = Policy.spread

  @Option(help: "The seed of the random delays (default: 1).")
  var seed: UInt64 = 1

  @Option(help: ArgumentHelp("Also draw the curves into this file, as SVG.", valueName: "path"))
  var svg: String?

  func run() async throws {
    let options = StormOptions(clients: clients, outage: outage, window: window, seed: seed)
    let policies =
      [.product(name: "longlink \(policy.rawValue)", policy.reconnect(window: window))]
      + StormPolicy.others
    let curves = await withTaskGroup(of: (Int, StormCurve).self) { group in
      for (index, policy) in policies.enumerated() {
        group.addTask { (index, Storm.run(options, policy)) }
      }
      return await group.reduce(into: [Int: StormCurve]()) { $0[$1.0] = $1.1 }
    }
    let results = policies.enumerated().map { StormResult(policy: $1, curve: curves[$0]!) }
    for line in StormTable(options: options, results: results).lines { try Output.line(line) }
    guard let svg else { return }
    let plot = StormPlot(options: options, results: results)
    try FileProblem.naming(svg) {
      try Data(plot.svg.utf8).write(to: URL(fileURLWithPath: svg))
    }
  }

  private static func outage(_ text: String) throws -> Duration {
    let time = try Values.interval(text)
    // With the policy that never waits, more than an hour would be of no use.
    guard time <= .seconds(3_600) else { throw ValidationError("'\(text)' is over 3600 seconds.") }
    return time
  }

  private static func window(_ text: String) throws -> Duration {
    let time = try Values.interval(text)
    guard time >= .seconds(1), time <= .seconds(3_600) else {
      throw ValidationError("'\(text)' is not between 1 and 3600 seconds.")
    }
    return time
  }
}

/// A storm under one policy.
struct StormResult: Sendable {
  let policy: StormPolicy
  let curve: StormCurve
}

/// The table that a storm prints.
struct StormTable {
  let options: StormOptions
  let results: [StormResult]

  var lines: [String] {
    let header = [
      "policy", "peak attempts/s", "peak accepted/s", "of the even rate", "all back after",
    ]
    let rows = results.map { result in
      [
        result.policy.name, result.curve.peakAttempts.grouped, result.curve.peakAccepted.grouped,
        String(format: "%.2f", Double(result.curve.peakAttempts) / options.evenRate),
        seconds(result),
      ]
    }
    let widths = header.indices.map { column in
      ([header] + rows).map { $0[column].count }.max() ?? 0
    }
    let text = ([header] + rows).map { row in
      zip(row, widths).enumerated().map { column, cell in
        let blanks = String(repeating: " ", count: cell.1 - cell.0.count)
        return column == 0 ? cell.0 + blanks : blanks + cell.0
      }.joined(separator: "  ")
    }
    let rate = Int(options.evenRate.rounded()).grouped
    return [
      "\(options.clients.grouped) clients lose their server, which comes back after "
        + "\(options.outage.inSeconds); even rate over \(options.window.inSeconds): \(rate)/s", "",
    ] + text + price
  }

  /// The cost and the benefit of a longer wait than that of the usual policy.
  private var price: [String] {
    guard let own = results.first, let usual = results.first(where: { $0.policy == .fixed }),
      back(own) > back(usual), usual.curve.peakAttempts > own.curve.peakAttempts
    else { return [] }
    return [
      "",
      "The longer wait costs time: the last client is back \(seconds(own)) after the server, "
        + "not \(seconds(usual))", "(\(usual.policy.name)).",
      "It spares the server: \(own.curve.peakAttempts.grouped) attempts in the busiest second, "
        + "not \(usual.curve.peakAttempts.grouped),",
      "under which a server that has just started may fail again.",
    ]
  }

  private func back(_ result: StormResult) -> Duration { result.curve.allBack - options.outage }

  private func seconds(_ result: StormResult) -> String {
    String(format: "%.1f s", back(result) / .seconds(1))
  }
}
