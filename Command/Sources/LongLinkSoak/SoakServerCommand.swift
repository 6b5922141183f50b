// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Logging
import LongLinkCommandSupport
import LongLinkOnce
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
    configuration.identity.authenticate = { request in
      let name = String(decoding: request.credential ?? [], as: UTF8.self)
      guard name.hasPrefix("client ") else {
        throw Rejection(.unauthenticated, "no name of a client")
      }
      return Authentication(Principal(name), validity: SoakTiming.validity)
    }
    configuration.identity.credentialGrace = SoakTiming.credentialGrace
    configuration.drain.spread = SoakTiming.drainSpread
    configuration.logger.logLevel = .error
    let lines = try SoakLedger(path: ledger)
    try await SoakPayments.run(ledger: lines, path: ledger) { payments, once in
      configuration.once = once
      let server = try LongLinkServer(configuration)
      SoakServerCommand.install(on: server, ledger: lines)
      payments.install(on: server)
      try await SoakServerCommand.run(server, lines)
    }
  }

  private static func run(_ server: LongLinkServer, _ ledger: SoakLedger) async throws {
    var broadcasting: Task<Void, any Error>?
    do {
      try await server.run(until: .sigterm, .sigint, within: SoakTiming.drain) {
        broadcasting = Task { try await SoakServerCommand.broadcast(on: server, ledger: ledger) }
        for address in server.addresses { try Output.line("listening on \(address)") }
      }
    } catch let error as LongLinkError {
      Output.error("\(error)")
      throw ExitCode(ExitStatus.failure)
    }
    broadcasting?.cancel()
  }

  /// Sends numbers to all clients, until the task is cancelled.
  private static func broadcast(on server: LongLinkServer, ledger: SoakLedger) async throws {
    let run = UInt64.random(in: 0..<1 << 40)
    for number in 1... as PartialRangeFrom<UInt64> {
      try await Task.sleep(for: SoakTiming.broadcasts)
      let key = SoakBroadcasts.key(run: run, number: number)
      let report = try await server.broadcast(SoakType.news, SoakRecord.bytes(of: key))
      if report.skipped + report.dropped > 0 { ledger.append(SoakRecord(key: key, .withheld)) }
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
    server.routeStream(SoakType.watch, .responseItems) { request, _, writer in
      guard let last = SoakRecord.key(in: request.body) else { throw Rejection(.malformed, "") }
      do {
        try await request.untilDraining { try await count(after: last, request, to: writer) }
      } catch let rejection as Rejection where rejection.code == .draining {
        throw await end(of: request)
      }
      return [UInt8]()
    }
  }

  /// Writes numbers until the task is cancelled.
  private static func count(
    after last: UInt64, _ request: InboundRequest, to writer: ItemWriter<[UInt8]>
  ) async throws {
    for number in (last + 1)... {
      try await writer.write(SoakRecord.bytes(of: number))
      try await request.clock.sleep(for: SoakTiming.broadcasts)
    }
  }

  /// Why a stream ends that was told to.
  private static func end(of request: InboundRequest) async -> Rejection {
    for await case .draining(let end) in request.peer.events {
      let isAlone = request.clock.now.duration(to: end) > SoakTiming.drain
      return isAlone ? Rejection(SoakType.expired) : Rejection(.draining, SoakType.told)
    }
    return Rejection(.draining, "the client leaves")
  }

  private static func note(_ request: InboundRequest, in ledger: SoakLedger) throws {
    guard request.body.count > 8, let key = SoakRecord.key(in: request.body),
      SoakRecord.key(in: request.idempotencyKey) == key
    else { throw Rejection(.malformed, "the body and the idempotency key do not match") }
    ledger.append(SoakRecord(key: key, .executed))
  }
}
