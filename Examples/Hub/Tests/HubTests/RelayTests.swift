// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Testing

/// Three servers, each with a relay to the others.
@Suite struct RelayTests {
  private let simulation = Simulation(seed: 1)
  private let endpoints = (1...3).map { Endpoint.host("10.0.0.\($0)", port: 9000) }

  private func server(_ number: Int) async throws -> Relay {
    var configuration = ServerConfiguration(listen: [endpoints[number]])
    configuration.identity.authenticate = { client in
      let name = String(decoding: client.credential ?? [], as: UTF8.self)
      return Authentication(
        Principal(name, attributes: ["role": name == "relay" ? "server" : "user"]))
    }
    let server = try LongLinkServer(
      configuration, on: [simulation.eventLoop(named: "server \(number)")])
    let others = endpoints.indices.filter { $0 != number }
    let relay = try Relay(of: server, to: others.map { try client("relay", of: $0) })
    try await server.start()
    return relay
  }

  private func client(_ name: String, of number: Int) throws -> LongLinkClient {
    var configuration = ClientConfiguration(servers: [endpoints[number]])
    configuration.identity.credential = { Array(name.utf8) }
    configuration.identity.sendsCredentialUnencrypted = true
    return try LongLinkClient(configuration, on: simulation.mainLoop)
  }

  @Test func `a push reaches a user's clients at each server that is there`() async throws {
    try await simulation.run {
      let relays = try await [server(0), server(1), server(2)]
      let clients = try [client("ann", of: 1), client("ann", of: 2), client("bob", of: 0)]
      for client in clients { try await client.connect() }
      var pushes = clients.prefix(2).map { $0.pushes(of: 7).makeAsyncIterator() }
      #expect(try await relays[0].push(to: "ann", [1]) == 2)
      #expect(await pushes[0].next()?.body == [1])
      #expect(await pushes[1].next()?.body == [1])

      // A user cannot use the relay, and a server that is gone is not waited for for long.
      let error = await #expect(throws: LongLinkError.self) {
        try await clients[2].request(900, [1])
      }
      #expect(error?.response == .forbidden && error?.delivery == .refused)
      await relays[1].server.shutDown()
      #expect(try await relays[0].push(to: "ann", [2]) == 1)
      #expect(await pushes[1].next()?.body == [2])

      for client in clients + relays.flatMap(\.others) { await client.close() }
      for relay in relays { await relay.server.shutDown() }
    }
  }
}
