// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import LongLink
import LongLinkCommandSupport

/// `longlink ping`.
struct PingCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ping",
    abstract: "Sends pings and measures their round-trip times.",
    discussion: """
      Prints each round-trip time, then their minimum, median, 99th percentile and maximum. A \
      server closes the connection of a client that sends more than 100 pings in 10 seconds, so \
      more than 90 need an interval of at least 0.12 seconds.

      SIGINT (Ctrl-C) stops early, prints the summary so far and exits with code 130.

      Exit codes: 0 success, 130 after SIGINT, 64 wrong arguments, 3 could not connect, \
      4 deadline exceeded, 5 too many pings, 6 corrupted or protocol violation, 7 connection lost, \
      8 not secure (TLS), 9 not accepted by the server (its credential or certificate), 1 any \
      other failure.
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
        "More than 90 pings need an interval of at least 0.12: a server allows 100 in 10 seconds.")
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

  /// Sends pings and prints each time. Returns all times, and the error that ended it, if any.
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

  /// The minimum, median, 99th percentile and maximum of one or more times.
  static func summary(of times: [Duration]) -> String {
    let sorted = times.sorted()
    // The nearest rank: the smallest time that at least `percent` percent do not exceed.
    func rank(_ percent: Int) -> Duration { sorted[(sorted.count * percent + 99) / 100 - 1] }
    let shown = [sorted[0], rank(50), rank(99), sorted[sorted.count - 1]].map(\.inMilliseconds)
    return "min/median/p99/max: \(shown.joined(separator: " / "))"
  }
}
