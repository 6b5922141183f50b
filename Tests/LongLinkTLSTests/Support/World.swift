// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTLS
import LongLinkTesting
import Logging

/// A client and a server with TLS between them, in a simulation or over loopback.
struct World: Sendable {
  let client: LongLinkClient
  let server: LongLinkServer
  /// Nil over loopback.
  let simulation: Simulation?
  /// The machine of the server; nil over loopback.
  var serverMachine: SimulatedMachine?

  /// What both sides are made of.
  struct Parts: Sendable {
    var clientSecurity: ClientSecurity?
    var serverSecurity: ServerSecurity?
    var server = ServerConfiguration(listen: [.host("10.0.0.1", port: 7_000)])
    /// The name that the client dials.
    var client = ClientConfiguration(servers: [.host("10.0.0.1", port: 7_000)])

    init(_ clientSecurity: ClientSecurity?, _ serverSecurity: ServerSecurity?) {
      self.clientSecurity = clientSecurity
      self.serverSecurity = serverSecurity
      server.logger.logLevel = .critical
      client.logger.logLevel = .critical
      client.timeouts.request = .seconds(5)
    }

    /// What makes a client of a server over real sockets.
    func realClient(of endpoint: Endpoint) -> ClientConfiguration {
      var configuration = client
      configuration.servers = [ServerEntry(endpoint)]
      configuration.security = clientSecurity
      // Real time passes as fast as the machine is slow: it is not the subject.
      configuration.timeouts.request = .seconds(3_600)
      return configuration
    }

    init(
      _ client: TLSClientConfiguration = .trusting(), _ server: TLSServerConfiguration = .with()
    ) throws {
      self.init(try .tls(client), try .tls(server))
    }
  }

  /// The type of a request that the server echoes, and of one that it answers with who its client
  /// is.
  static let echo: MessageType = 1
  static let identity: MessageType = 2

  static func makeServer(_ parts: Parts, on loops: [EventLoop]) throws -> LongLinkServer {
    var configuration = parts.server
    configuration.security = parts.serverSecurity
    let server = try LongLinkServer(configuration, on: loops)
    server.route(echo) { $0.body }
    server.route(identity) { request in
      let security = request.peer.security
      let names = security?.peerCertificate?.names ?? []
      return Array("\(security?.isResumed == true) \(names.count)".utf8)
    }
    return server
  }

  /// Runs a body in a simulation, which it leaves with nothing open.
  static func simulate<Result: Sendable>(
    _ parts: Parts, seed: UInt64 = 1, conditions: LinkConditions = .normal,
    timeLimit: Duration? = nil, _ body: @escaping @Sendable (World) async throws -> Result
  ) async throws -> (result: Result, simulation: Simulation) {
    var simulated = Simulation.Configuration()
    if let timeLimit { simulated.timeLimit = timeLimit }
    let simulation = Simulation(seed: seed, configuration: simulated)
    simulation.network.conditions = conditions
    let result = try await simulation.run {
      let loop = simulation.eventLoop(named: "server")
      let server = try makeServer(parts, on: [loop])
      try await server.start()
      var configuration = parts.client
      configuration.security = parts.clientSecurity
      let client = try LongLinkClient(configuration, on: simulation.eventLoop(named: "client"))
      let outcome = await Swift.Result {
        try await body(
          World(
            client: client, server: server, simulation: simulation,
            serverMachine: simulation.machine(of: loop)))
      }
      await client.close()
      await server.shutDown(within: .zero)
      try await simulation.sleep(for: .seconds(10))
      return try outcome.get()
    }
    return (result, simulation)
  }

  /// Runs a body over loopback.
  static func overLoopback<Result: Sendable>(
    _ parts: Parts, _ body: @Sendable (World) async throws -> Result
  ) async throws -> Result {
    var parts = parts
    parts.server.listen = [.host("127.0.0.1", port: 0)]
    let server = try makeServer(parts, on: [])
    try await server.start()
    let client = try LongLinkClient(parts.realClient(of: server.endpoint))
    let outcome = await Swift.Result {
      try await body(World(client: client, server: server, simulation: nil))
    }
    await client.close()
    await server.shutDown(within: .zero)
    return try outcome.get()
  }
}

extension Result where Failure == any Error {
  /// The outcome of an asynchronous function.
  init(_ body: () async throws -> Success) async {
    do {
      self = .success(try await body())
    } catch {
      self = .failure(error)
    }
  }
}
