// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Testing

/// What errors say to people.
@Suite struct ErrorTextTests {
  @Test(arguments: TestEnvironment.allCases)
  func `a server that cannot be reached is named once`(_ environment: TestEnvironment) async throws
  {
    try await Stage.run(environment) { stage in
      let server = try await stage.serve()
      let address = server.addresses[0]
      await server.shutDown()
      let reason =
        environment == .unix
        ? "No such file or directory (ENOENT)" : "Connection refused (ECONNREFUSED)"
      let client = try stage.client(of: server)
      let connect = try await failure { try await client.connect() }
      #expect("\(connect)" == "connect to \(address): \(reason)")
      let request = try await failure {
        try await client.request(
          .echo, [1], options: RequestOptions(offline: .failUnlessConnecting))
      }
      let delivery = "; delivery: notSent"
      #expect(
        "\(request)"
          == "\(request.operation) to \(address): \(request.code) (\(reason))\(delivery)")
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a server that cannot listen says where and why`(_ environment: TestEnvironment) async throws
  {
    try await Stage.run(environment) { stage in
      let server = try await stage.serve()
      let error = try await failure { try await stage.serve(at: server.endpoints[0]) }
      #expect(
        "\(error)" == "listen on \(server.addresses[0]): Address already in use (EADDRINUSE)")
    }
  }

  @Test func `the name of a server stands beside its address`() async throws {
    try await Stage.run(.loopback) { stage in
      let server = try await stage.serve()
      let port = try #require(server.addresses.first?.port)
      // The resolver takes this spelling of the address for a name, on any machine.
      let error = try await failure { try await stage.serve(at: .host("127.1", port: port)) }
      #expect(
        "\(error)"
          == "listen on 127.1:\(port), 127.0.0.1:\(port): Address already in use (EADDRINUSE)")
      await server.shutDown()
      let client = try stage.client(to: [.host("127.1", port: port)])
      let connect = try await failure { try await client.connect() }
      #expect(
        "\(connect)"
          == "connect to 127.0.0.1:\(port): 127.1:\(port): Connection refused (ECONNREFUSED)")
    }
  }

  @Test func `an error of neither a request nor a push has no delivery`() async throws {
    let configuration = try #require(
      throws: LongLinkError.self
    ) { try LongLinkClient(ClientConfiguration(servers: [.host("", port: 1)])) }
    #expect("\(configuration)" == "check `servers[0]`: the host is empty")
    try await Stage.run(.simulated) { stage in
      let client = try stage.client(to: [.host("nowhere.example", port: 80)])
      let connect = try await failure { try await client.connect() }
      #expect("\(connect)".hasPrefix("connect: look up nowhere.example: "), "\(connect)")
      await client.close()
      let ping = try await failure { try await client.ping() }
      #expect(!"\(ping)".contains("delivery"), "\(ping)")
      let push = try await failure { try await client.push(5, [1]) }
      #expect("\(push)".hasSuffix("; delivery: notSent"), "\(push)")
    }
  }
}
