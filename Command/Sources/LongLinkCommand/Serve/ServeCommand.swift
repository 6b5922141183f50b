// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Logging
import LongLinkCommandSupport
import LongLinkOnce
import LongLinkServer
import LongLinkTLS
import LongLinkUploadsServer

#if HTTP
import LongLinkHTTPServer
#endif
#if Operations
import LongLinkOps
#endif

/// `longlink serve`.
struct ServeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Runs a server with the routes of Protocols/demo.proto.",
    discussion: """
      Prints `listening on HOST:PORT` or `listening on unix:PATH` as its first line on standard \
      output once it accepts connections. Message types: 1 Echo, 2 Sleep, 3 Ticks, 4 Fail, \
      5 Stats, 10 Once, 11 Broadcast, 19 Peers; streams: 6 Count, 7 Sum, 8 Relay, 9 Feed. With \
      --uploads also those of Protocols/uploads.proto: 12 Create, 13 Status, 14 Append, 15 Finish, \
      16 Abort; with --allow-blocking 24 Block.

      With --uploads each finished upload is DIRECTORY/ID/, with its files under their names, and \
      fields.json with the form's fields. Uploads that are not finished are in \
      DIRECTORY/.unfinished/, and go on when the server is started again.

      With --once requests of every type can run once, if the client asks for it, as \
      `longlink call --once` does. One process at a time has the file of answers; beside it are \
      others, whose names end with -wal, -shm and .lock. While another program, such as sqlite3, \
      has the file locked, the start waits 2 seconds for each step, and then exits with code 1.

      With --tls-certificate the files are looked at every 10 seconds, and at SIGHUP: new \
      connections use what has changed, unless it does not fit together, which is logged.

      With --ops, systemd is told when the server is ready, that it lives, and when it stops \
      (Type=notify, WatchdogSec=).

      On SIGTERM or SIGINT it lets running requests finish for at most 6 seconds, and exits after \
      10 seconds at the latest: with code 0, or with 1 if the file of answers could not be closed, \
      because another program had it locked. A second signal ends it at once, as does the first \
      one before it listens.
      """)

  @OptionGroup private var place: ListenOptions
  @OptionGroup private var security: ServingSecurityOptions
  @OptionGroup private var once: OnceServingOptions

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

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Receive uploads, and keep them in this directory, which is made if there is none.",
      valueName: "directory"))
  var uploads: String?

  #if HTTP
  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      """
      Take requests over HTTP too, on this port of 127.0.0.1, at /longlink/v1; 0 for a free one. \
      A further line, `http on HOST:PORT`, says where.
      """,
      valueName: "port"),
    transform: Values.listeningPort)
  var http: UInt16?
  #endif

  #if Operations
  @OptionGroup private var operations: OperationsOptions
  @OptionGroup private var recording: RecordingOptions
  #endif

  @Flag(
    help: """
      Add the route 24 Block, with which every client can hold up a loop for 10 seconds, to see \
      what the port of --ops tells about that.
      """)
  var allowBlocking = false

  @Flag(name: .shortAndLong, help: "Log more to standard error.")
  var verbose = false

  @Flag(
    help: ArgumentHelp(
      "End at once when standard input does, and log only errors.", visibility: .private))
  var forDemo = false

  func run() async throws {
    Output.logToStandardError()
    if forDemo { ParentWatch.start() }
    let tls = try security.makeTLS()
    let once = try await once.open()
    let server = try makeServer(tls, once)
    DemoRoutes.install(on: server, noting: try self.once.effects())
    if allowBlocking { DemoRoutes.installBlocking(on: server) }
    if let uploads {
      do {
        try server.routeUploads(in: uploads)
      } catch {
        Output.error("\(error)")
        throw ExitCode(ExitStatus.failure)
      }
    }
    #if HTTP
    let gateway = try makeGateway(of: server)
    #endif
    #if Operations
    let port = try operations.makePort(for: server, recording, verbose: verbose)
    #endif
    var reloading: Task<Void, Never>?
    do {
      #if Operations
      // It tells that the server starts.
      let operationsAddress = try await port?.start()
      #endif
      try await server.run(until: .sigterm, .sigint, within: ServeCommand.drainTime) {
        #if HTTP
        let address = try await gateway?.start()
        #endif
        // The sign of readiness: everything listens.
        for address in server.addresses { try Output.line("listening on \(address)") }
        #if HTTP
        if let address { try Output.line("http on \(address)") }
        #endif
        #if Operations
        if let operationsAddress { try Output.line("ops on \(operationsAddress)") }
        #endif
        // Without certificates to reload, the end of the terminal ends the server.
        reloading = tls.map { tls in TerminationSignals.onHangUp { await tls.reload() } }
      }
    } catch let error as LongLinkError {
      Output.error("\(error)")
      throw ExitCode(ExitStatus.failure)
    }
    reloading?.cancel()
    #if HTTP
    // Its requests have ended with the server's.
    await gateway?.shutDown(within: .seconds(1))
    #endif
    try await self.once.close(once, within: ServeCommand.closeTime)
  }

  /// How long running requests go on after a signal. Another second passes if streams have to be
  /// told of their end, and their clients do not read; another one if the gateway has to wait.
  private static let drainTime = Duration.seconds(6)
  /// How long the file of answers may take to be closed. SQLite waits 2 s for other programs.
  private static let closeTime = Duration.seconds(2)

  #if HTTP
  /// Makes the gateway that `--http` asks for.
  private func makeGateway(of server: LongLinkServer) throws -> LongLinkHTTPGateway? {
    guard let http else { return nil }
    var configuration = HTTPGatewayConfiguration()
    configuration.port = Int(http)
    configuration.logger.logLevel = verbose ? .debug : forDemo ? .error : .warning
    return try LongLinkHTTPGateway(for: server, configuration)
  }
  #endif

  private func makeServer(_ tls: TLSServer?, _ once: OnceConfiguration?) throws -> LongLinkServer {
    var configuration = ServerConfiguration(listen: [place.endpoint])
    configuration.loops = loops
    configuration.name = "longlink"
    configuration.logger.logLevel = verbose ? .debug : forDemo ? .error : .warning
    configuration.security = tls.map { .tls($0) }
    security.authenticate(in: &configuration)
    configuration.once = once
    #if Operations
    recording.set(in: &configuration)
    #endif
    if let heartbeat { configuration.heartbeat.interval = heartbeat }
    if let heartbeatTimeout { configuration.heartbeat.timeout = heartbeatTimeout }
    if let maxBody {
      configuration.limits.maxBody = maxBody
      configuration.limits.maxRequestBytes = max(configuration.limits.maxRequestBytes, maxBody)
      configuration.limits.memoryLimit = max(configuration.limits.memoryLimit, 6 * maxBody)
      configuration.limits.maxUnreadOutput = max(configuration.limits.maxUnreadOutput, maxBody)
    }
    do {
      return try LongLinkServer(configuration)
    } catch {
      throw Output.usageError("\(error)")
    }
  }
}
