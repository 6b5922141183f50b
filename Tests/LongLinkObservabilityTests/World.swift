// SPDX-License-Identifier: Apache-2.0

#if Operations
import LongLink
import LongLinkCore
import LongLinkServer
import LongLinkTesting
import Logging

/// A simulated network with a server and a client that is connected to it.
struct World: Sendable {
  let simulation: Simulation
  let server: LongLinkServer
  let client: LongLinkClient

  static let echo: MessageType = 1
  static let fails: MessageType = 2
  static let items: MessageType = 3

  static func run(
    client configureClient: @escaping @Sendable (inout ClientConfiguration) -> Void = { _ in },
    server configureServer: @escaping @Sendable (inout ServerConfiguration) -> Void = { _ in },
    routes: @escaping @Sendable (LongLinkServer) -> Void = { _ in },
    handlers: @escaping @Sendable (LongLinkClient) -> Void = { _ in },
    _ body: @escaping @Sendable (World) async throws -> Void
  ) async throws {
    let simulation = Simulation()
    try await simulation.run {
      var configuration = ServerConfiguration(listen: [.host("127.0.0.1", port: 0)])
      configuration.logger.logLevel = .critical
      configureServer(&configuration)
      let server = try LongLinkServer(configuration, on: [simulation.mainLoop])
      server.route(echo) { request in request.body }
      server.route(fails) { request throws -> [UInt8] in
        let number = request.body.reduce(0 as UInt32) { $0 << 8 | UInt32($1) }
        throw Rejection(ResponseCode(integerLiteral: number), "no")
      }
      routes(server)
      try await server.start()
      var own = ClientConfiguration(servers: [server.endpoint])
      own.logger.logLevel = .critical
      configureClient(&own)
      let client = try LongLinkClient(own, on: simulation.mainLoop)
      handlers(client)
      try await client.connect()
      try await body(World(simulation: simulation, server: server, client: client))
      await client.close()
      await server.shutDown(within: .zero)
    }
  }
}
#endif
