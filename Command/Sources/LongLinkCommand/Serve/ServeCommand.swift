// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Logging
import LongLinkCommandSupport
import LongLinkServer

/// `longlink serve`.
struct ServeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Runs a server with the routes of Protocols/demo.proto.",
    discussion: """
      Prints `listening on HOST:PORT` or `listening on unix:PATH` as its first line on standard \
      output once it accepts connections. Message types: 1 Echo, 2 Sleep, 3 Ticks, 4 Fail, \
      5 Stats; streams: 6 Count, 7 Sum, 8 Relay, 9 Feed.

      On SIGTERM or SIGINT it lets running requests finish for at most 10 seconds, then exits with \
      code 0. A second signal ends it at once.
      """)

  @OptionGroup private var place: EndpointOptions

  @Option(
    parsing: .unconditional,
    help: "How many event loops connections are spread over (default: 1).",
    transform: Values.count)
  var loops = 1

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "A client that is silent for this time is pinged (default: 30).",
      valueName: "seconds"),
    transform: Values.time)
  var heartbeat: Duration?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "A client that stays silent for this time after a ping is dropped (default: 10).",
      valueName: "seconds"),
    transform: Values.time)
  var heartbeatTimeout: Duration?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "The size of the largest body to accept (default: 16777216).", valueName: "bytes"),
    transform: Values.count)
  var maxBody: Int?

  @Flag(name: .shortAndLong, help: "Log more to standard error.")
  var verbose = false

  @Flag(
    help: ArgumentHelp(
      "End at once when standard input does, and log only errors.", visibility: .private))
  var forDemo = false

  func run() async throws {
    Output.logToStandardError()
    if forDemo { ParentWatch.start() }
    // From here on signals are kept for the server, even if they come before it listens.
    let signals = TerminationSignals()
    let server = try makeServer()
    DemoRoutes.install(on: server)
    do {
      try await server.start()
    } catch {
      Output.error("\(error)")
      throw ExitCode(ExitStatus.failure)
    }
    for address in server.addresses { try Output.line("listening on \(address)") }
    await signals.first()
    await server.shutDown(within: .seconds(10))
  }

  private func makeServer() throws -> LongLinkServer {
    var configuration = ServerConfiguration(listen: [place.endpoint])
    configuration.loops = loops
    configuration.name = "longlink"
    configuration.logger.logLevel = verbose ? .debug : forDemo ? .error : .warning
    if let heartbeat { configuration.heartbeat.interval = heartbeat }
    if let heartbeatTimeout { configuration.heartbeat.timeout = heartbeatTimeout }
    if let maxBody {
      configuration.maxBody = maxBody
      configuration.maxRequestBytes = max(configuration.maxRequestBytes, maxBody)
      configuration.memoryLimit = max(configuration.memoryLimit, 6 * maxBody)
      configuration.maxUnreadOutput = max(configuration.maxUnreadOutput, maxBody)
    }
    do {
      return try LongLinkServer(configuration)
    } catch {
      throw Output.usageError("\(error)")
    }
  }
}
