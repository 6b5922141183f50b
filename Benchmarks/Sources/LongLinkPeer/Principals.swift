// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BenchSupport
import Foundation
import LongLink
import LongLinkServer
import LongLinkTesting
import Logging

/// Clients that a server knows by principal: what it accepts, and what a push to one of them costs.
struct Principals: AsyncParsableCommand {
  static let configuration = CommandConfiguration(commandName: "principals")

  @Option(help: "Clients, each of a principal of its own.")
  var clients = 100_000
  @Option(help: "Pushes, each to the client of another principal.")
  var pushes = 100_000

  /// A client's credential, which is the name of its principal.
  static func credential(_ number: Int) -> [UInt8] { Array(name(number).utf8) }

  private static func name(_ number: Int) -> String { "user \(1_000_000 + number)" }

  /// Lets a server accept the principal that a client's credential names, for some time.
  static func accept(for validity: Duration, in configuration: inout ServerConfiguration) {
    configuration.identity.authenticate = { request in
      let name = String(decoding: request.credential ?? [], as: UTF8.self)
      return Authentication(Principal(name), validity: validity)
    }
  }

  /// In virtual time, since no process has so many sockets: what the pushes take is real.
  func run() async throws {
    var bounds = Simulation.Configuration()
    bounds.turnLimit = .max
    bounds.traceCapacity = 1
    let simulation = Simulation(seed: 1, configuration: bounds)
    try await simulation.run { try await measure(simulation) }.print()
    Foundation.exit(0)
  }

  private func measure(_ simulation: Simulation) async throws -> PushOutcome {
    var configuration = ServerConfiguration(listen: [.host("10.0.0.1", port: 0)])
    configuration.limits.maxConnections = 2 * clients
    configuration.addresses.maxConnections = 2 * clients
    configuration.addresses.maxConnectionRate = 1_000_000
    configuration.logger.logLevel = .critical
    Principals.accept(for: .seconds(86_400), in: &configuration)
    let loop = simulation.eventLoop(named: "server")
    let server = try LongLinkServer(configuration, on: [loop])
    try await server.start()
    var connected: [LongLinkClient] = []
    for number in 0..<clients {
      var configuration = ClientConfiguration(servers: [server.endpoint])
      configuration.identity.credential = { Principals.credential(number) }
      configuration.identity.sendsCredentialUnencrypted = true
      configuration.logger.logLevel = .critical
      let client = try LongLinkClient(configuration, on: simulation.mainLoop)
      try await client.connect()
      connected.append(client)
    }
    let outcome = try await push(through: server, on: loop)
    withExtendedLifetime(connected) {}
    return outcome
  }

  /// Pushes to principals in random order, and to the same clients without a look at their names.
  private func push(
    through server: LongLinkServer, on loop: EventLoop
  ) async throws -> PushOutcome {
    let names = (0..<pushes).map { _ in Principals.name(.random(in: 0..<clients)) }
    let body = [UInt8](repeating: 7, count: 64)
    let peers = names.flatMap { server.peers(of: $0) }
    let task = Task(executorPreference: loop) {
      let begin = Usage.now.cpu
      for name in names {
        let report = try await server.push(to: name, Idle.news, body)
        guard report.queued == 1 else { Meter.fail("a push was not sent") }
      }
      let middle = Usage.now.cpu
      for peer in peers { try await peer.push(Idle.news, body) }
      let each = 1e6 / Double(names.count)
      return PushOutcome(
        principal: (middle - begin) * each, peer: (Usage.now.cpu - middle) * each)
    }
    return try await task.value
  }
}
