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
      var (endpoint, address) = (server.endpoints[0], server.addresses[0])
      await server.shutDown()
      if environment == .loopback {
        // Another test's server may get the port that is free now. No server is given this one.
        (endpoint, address) = (.host("127.0.0.1", port: 1), .ipv4(127, 0, 0, 1, port: 1))
      }
      let reason =
        environment == .unix
        ? "No such file or directory (ENOENT)" : "Connection refused (ECONNREFUSED)"
      let client = try stage.client(to: [endpoint])
      let connect = try await failure { try await client.connect() }
      #expect("\(connect)" == "connect to \(address): \(reason)")
      let request = try await failure {
        try await client.request(
          .echo, [1], options: RequestOptions(waitsForConnection: false))
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

  /// Bodies of an application's error, and what its description shows of them.
  private static let textsOfErrors: [([UInt8], String)] = [
    (Array("say \"something\"".utf8), #" (say "something")"#),
    (Array("a bell \u{7}".utf8), ""),
    (Array("two\nlines, ünd 無".utf8), #" (two\nlines, ünd 無)"#),
    ([UInt8](repeating: 0x61, count: 1_000), " (\(String(repeating: "a", count: 197))…)"),
    (Array(String(repeating: "ü", count: 150).utf8), " (\(String(repeating: "ü", count: 98))…)"),
    ([8, 5], ""), ([0xFF, 0x61], ""), ([], ""),
  ]

  @Test(arguments: textsOfErrors)
  func `the text of an application's error is shown`(body: [UInt8], text: String) async throws {
    try await Stage.serving(
      in: .simulated, { $0.route(1) { _ in throw Rejection(1_000, body: body) } }
    ) { _, _, client in
      let error = try await failure { try await client.request(1, []) }
      #expect(error.body == body)
      #expect("\(error)".hasSuffix(": rejected 1000\(text); delivery: answered"), "\(error)")
    }
  }

  @Test(arguments: TestEnvironment.allCases + [.short])
  func `the text of a rejection arrives over each way`(_ environment: TestEnvironment) async throws
  {
    try await Stage.serving(
      in: environment,
      { server in
        server.route(1) { _ in throw Rejection(1_000, "say something") }
        server.routeStream(2, .requestItems) { _, _, _ in throw Rejection(.conflict, "too late") }
      }
    ) { _, _, client in
      let own = try await failure { try await client.request(1, []) }
      #expect(own.detail == "say something" && own.response == 1_000, "\(own)")
      let upload = try await failure { try await client.sendItems(2, []) { _ in } }
      #expect(upload.detail == "too late" && upload.response == .conflict, "\(upload)")
      #expect("\(upload)".contains(": rejected 409 (too late); delivery: answered"), "\(upload)")
    }
  }

  @Test func `a request whose deadline passes says how long it had`() async throws {
    try await Stage.pair { _, _, client in
      let options = RequestOptions(timeout: .seconds(2))
      let error = try await failure { try await client.request(.hang, [], options: options) }
      #expect(error.code == .deadlineExceeded)
      #expect(error.detail == "the timeout of 2.0 seconds has passed", "\(error)")
    }
    try await Stage.simulate { stage, _ in
      let client = try stage.client(to: [.host("10.0.0.77", port: 1)])
      let error = try await failure { try await client.request(.hang, []) }
      #expect(error.code == .deadlineExceeded && error.delivery == .notSent)
      #expect(error.detail.hasPrefix("it waited for a connection"), "\(error)")
      #expect(error.detail.hasSuffix("; the timeout of 15.0 seconds has passed"), "\(error)")
    }
  }

  @Test(arguments: [ServerAction.close, .reset])
  func `what a goaway said stays in the error of a request that is lost after it`(
    _ ending: ServerAction
  ) async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await SimulatedServer.start(
        on: stage.serverLoop, at: .ipv4(10, 0, 0, 1, port: 4_000))
      server.on(
        1,
        .sequence([.goAway(code: .overloaded, reason: "too\nmuch"), .pause(.seconds(1)), ending]))
      let client = try stage.client(to: [.host("10.0.0.1", port: 4_000)])
      let error = try await failure { try await client.request(1, []) }
      #expect(error.code == .connectionLost && error.delivery == .sent, "\(error)")
      #expect(error.detail.contains("429"), "\(error)")
      #expect(error.detail.hasSuffix(#": too\nmuch"#), "\(error)")
      await server.stop()
    }
  }

  @Test(arguments: [true, false])
  func `an error keeps how the server refused an earlier sending`(
    _ waits: Bool
  ) async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await SimulatedServer.start(
        on: stage.serverLoop, at: .ipv4(10, 0, 0, 1, port: 4_000))
      server.on(1, .sequence([.refuse(.overloaded, "busy\n"), .close]))
      let client = try stage.client(to: [.host("10.0.0.1", port: 4_000)])
      try await client.connect()
      simulation.network.connects = .refused
      let options = RequestOptions(timeout: .seconds(20), waitsForConnection: waits)
      let error = try await failure { try await client.request(1, [], options: options) }
      #expect(error.code == (waits ? .deadlineExceeded : .notConnected), "\(error)")
      let ending = #"; an earlier sending was refused with 429: busy\n"#
      #expect(error.delivery == .refused && error.detail.hasSuffix(ending), "\(error)")
      await server.stop()
    }
  }

  @Test func `an error keeps why a goaway left its request out`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await SimulatedServer.start(
        on: stage.serverLoop, at: .ipv4(10, 0, 0, 1, port: 4_000))
      server.on(1, .sequence([.frame { _ in .goAway(code: .draining, reason: "moving") }, .close]))
      let client = try stage.client(to: [.host("10.0.0.1", port: 4_000)])
      try await client.connect()
      simulation.network.connects = .refused
      let error = try await failure {
        try await client.request(1, [], options: RequestOptions(timeout: .seconds(20)))
      }
      #expect(error.code == .deadlineExceeded && error.delivery == .refused, "\(error)")
      #expect(error.detail.hasSuffix("; an earlier sending was refused with 503: moving"))
      await server.stop()
    }
  }

  @Test func `an error says once why a goaway left its request out`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await SimulatedServer.start(
        on: stage.serverLoop, at: .ipv4(10, 0, 0, 1, port: 4_000))
      server.on(1, .sequence([.frame { _ in .goAway(code: .draining, reason: "moving") }, .close]))
      let client = try stage.client(to: [.host("10.0.0.1", port: 4_000)])
      let error = try await failure {
        try await client.request(1, [], options: RequestOptions(retry: .never))
      }
      #expect(error.code == .rejected && error.delivery == .refused, "\(error)")
      #expect(error.detail == "the server is draining (503): moving", "\(error)")
      await server.stop()
    }
  }
}
