// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import LongLink
import LongLinkCommandSupport

/// `longlink ping`.
struct PingCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ping",
    abstract: "Measures the time from pings to their pongs.",
    discussion: """
      Prints each round-trip time, then their minimum, median, 99th percentile and maximum. A \
      server closes the connection of a client that sends more than 100 pings in 10 seconds, so \
      more than 90 need an interval of at least 0.12 seconds.

      SIGINT (Ctrl-C) ends it early, with the summary of the pings until then and exit code 130.
      """)

  @OptionGroup var server: ServerOptions

  @Option(
    parsing: .unconditional, help: "How many pings to send (default: 5).", transform: Values.count)
  var count = 5

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("The time between two pings (default: 1).", valueName: "seconds"),
    transform: Values.interval)
  var interval: Duration = .seconds(1)

  func validate() throws {
    if count > 90, interval < .milliseconds(120) {
      throw ValidationError(
        "More than 90 pings need an interval of at least 0.12: a server takes 100 in 10 seconds.")
    }
  }

  func run() async throws {
    Output.logToStandardError()
    let signals = TerminationSignals()
    let client = try server.makeClient { configuration in
      configuration.heartbeat = Heartbeat(interval: .seconds(5), timeout: .seconds(5))
    }
    let (outcome, signal) = await signals.cancelling { await ping(client) }
    if signal == nil, let error = outcome.error as? LongLinkError { Output.error("\(error)") }
    if !outcome.times.isEmpty { try Output.line(PingCommand.summary(of: outcome.times)) }
    await client.close(within: .zero)
    if let signal { throw ExitCode.signal(signal) }
    if let error = outcome.error as? LongLinkError { throw ExitCode(ExitStatus.of(error)) }
    if let error = outcome.error { throw error }
  }

  /// Pings and prints each time. Returns them all, and why there are no more than these.
  private func ping(
    _ client: LongLinkClient
  ) async -> (times: [Duration], error: (any Error)?) {
    var times: [Duration] = []
    do {
      try await client.connect()
      for number in 1...count {
        let time = try await client.ping()
        times.append(time)
        try Output.line("pong \(number) from \(server.endpoint): \(time.inMilliseconds)")
        if number < count { try await Task.sleep(for: interval) }
      }
      return (times, nil)
    } catch {
      return (times, error)
    }
  }

  /// The least, middle, 99th in 100, and greatest of one or more times.
  static func summary(of times: [Duration]) -> String {
    let sorted = times.sorted()
    // The nearest rank: the least time that as large a part of all times does not exceed.
    func rank(_ percent: Int) -> Duration { sorted[(sorted.count * percent + 99) / 100 - 1] }
    let shown = [sorted[0], rank(50), rank(99), sorted[sorted.count - 1]].map(\.inMilliseconds)
    return "min/median/p99/max: \(shown.joined(separator: " / "))"
  }
}
