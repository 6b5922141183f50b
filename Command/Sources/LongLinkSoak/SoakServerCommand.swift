// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Logging
import LongLinkCommandSupport
import LongLinkServer

/// A server of the soak: it notes each request in its ledger before it does the work.
struct SoakServerCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "server", abstract: "Runs one server of a soak.", shouldDisplay: false)

  @Option(transform: Values.host) var host = "127.0.0.1"
  @Option(transform: Values.listeningPort) var port: UInt16 = 0
  @Option var ledger: String

  func run() async throws {
    Output.logToStandardError()
    ParentWatch.start()
    var configuration = ServerConfiguration(listen: [.host(host, port: port)])
    configuration.heartbeat = SoakTiming.heartbeat
    configuration.drain.spread = SoakTiming.drainSpread
    configuration.logger.logLevel = .error
    let server = try LongLinkServer(configuration)
    SoakServerCommand.install(on: server, ledger: try SoakLedger(path: ledger))
    do {
      try await server.run(until: .sigterm, .sigint, within: SoakTiming.drain) {
        for address in server.addresses { try Output.line("listening on \(address)") }
      }
    } catch let error as LongLinkError {
      Output.error("\(error)")
      throw ExitCode(ExitStatus.failure)
    }
  }

  private static func install(on server: LongLinkServer, ledger: SoakLedger) {
    server.route(SoakType.echo) { request in
      try note(request, in: ledger)
      return request.body
    }
    server.route(SoakType.slow) { request in
      try note(request, in: ledger)
      try await request.clock.sleep(for: .milliseconds(Int(request.body[8])))
      return request.body
    }
    server.route(SoakType.reject) { request in
      try note(request, in: ledger)
      throw Rejection(SoakType.rejection, body: request.body)
    }
    server.onPush(SoakType.push) { push, _ in
      guard let key = SoakRecord.key(in: push.body) else { return }
      ledger.append(SoakRecord(key: key, .executed))
    }
  }

  private static func note(_ request: InboundRequest, in ledger: SoakLedger) throws {
    guard request.body.count > 8, let key = SoakRecord.key(in: request.body),
      SoakRecord.key(in: request.idempotencyKey) == key
    else { throw Rejection(.malformed, "the body and the idempotency key do not match") }
    ledger.append(SoakRecord(key: key, .executed))
  }
}
