// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCore
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Testing

/// Who a client is over short links, each of which shows a credential.
@Suite struct ShortLinkIdentityTests {
  /// Runs a body with a server that knows keys, and a client with short links alone.
  private static func run(
    _ text: String = "wrong", setUp: @Sendable @escaping (LongLinkServer) -> Void = { _ in },
    _ body: @escaping @Sendable (Stage, LongLinkServer, LongLinkClient, Key) async throws -> Void
  ) async throws {
    let key = Key(text)
    try await Stage.serving(in: .short) { server in
      server.routeBasics()
      setUp(server)
    } client: {
      $0.identity.credential = { key.use() }
    } server: {
      $0.identity.authenticate = { try AuthenticationTests.byKey($0) }
    } _: { stage, server, client in
      try await body(stage, server, client, key)
    }
  }

  private static func refused(_ server: LongLinkServer) async -> UInt64 {
    await server.counters().authentications.refused
  }

  @Test func `a refusal ends its request at once, refused and unrepeated`() async throws {
    try await Self.run { _, server, client, key in
      let error = try await failure {
        try await client.request(.echo, [1], options: RequestOptions(retry: .idempotent))
      }
      #expect(error.code == .notAccepted && error.response == .unauthenticated, "\(error)")
      #expect(error.delivery == .refused && error.detail.contains("unknown key"), "\(error)")
      #expect(await Self.refused(server) == 1 && key.uses.count == 1)
      // Once may have been by chance.
      #expect(client.state == .short(Way.gatewayName))
    }
  }

  @Test func `a credential that was refused twice is not shown again`() async throws {
    try await Self.run { stage, server, client, key in
      for _ in 0..<2 { _ = try await failure { try await client.request(.echo, [1]) } }
      #expect(client.state == .notAccepted(.unauthenticated))
      for _ in 0..<20 {
        let error = try await failure { try await client.request(.echo, [1]) }
        #expect(error.code == .notAccepted && error.response == .unauthenticated, "\(error)")
        #expect(error.delivery == .notSent && error.detail.contains("unknown key"), "\(error)")
      }
      try await stage.clientLoop.sleep(for: .seconds(10_000))
      #expect(await Self.refused(server) == 2)
      #expect(await server.counters().shortLinks == 2)
      // Another one of the function is tried, without `connect`.
      key.text = "key-ann"
      try await client.expectEcho([2])
      #expect(client.state == .short(Way.gatewayName))
      #expect(await server.counters().authentications.accepted == 1)
    }
  }

  @Test func `connect lets the same credential be shown again`() async throws {
    try await Self.run { _, server, client, _ in
      for _ in 0..<3 { _ = try await failure { try await client.request(.echo, [1]) } }
      #expect(client.state == .notAccepted(.unauthenticated))
      try await client.connect()
      #expect(client.state != .notAccepted(.unauthenticated))
      for _ in 0..<5 { _ = try await failure { try await client.request(.echo, [1]) } }
      #expect(await Self.refused(server) == 4)
      #expect(client.state == .notAccepted(.unauthenticated))
    }
  }

  @Test func `requests that wait for a place fail with the refusal, and hammer nobody`()
    async throws
  {
    try await Self.run { _, server, client, _ in
      let codes = await withTaskGroup(of: LongLinkError.Code?.self) { group in
        for number in 0..<200 {
          group.addTask {
            let error = try? await failure { try await client.request(.echo, [UInt8(number)]) }
            return error?.code
          }
        }
        return await group.reduce(into: []) { $0.append($1) }
      }
      #expect(codes.count == 200 && codes.allSatisfy { $0 == .notAccepted })
      // Those that were under way when the answers came: at most 8 at a time.
      #expect(await server.counters().shortLinks <= 16)
    }
  }

  @Test func `a handler that makes its failed request again at once does not keep the loop`()
    async throws
  {
    // Without a credential, which comes at once.
    try await Stage.serving(in: .short) {
      $0.routeBasics()
    } client: { _ in
    } server: {
      $0.identity.authenticate = { try AuthenticationTests.byKey($0) }
    } _: { stage, server, client in
      let (failures, seen) = (Tally<Int>(), Tally<Int>())
      @Sendable func again() {
        client.request(.echo, [1], on: .connectionLoop) { _ in
          failures.add(0)
          let count = failures.count
          if count == 1_000 { stage.clientLoop.execute { seen.add(failures.count) } }
          if count < 10_000 { again() }
        }
      }
      // More than short links at a time, so that some wait when the refusals are final.
      for _ in 0..<20 { again() }
      await failures.reached(10_000)
      // The loop came to other work in between.
      await seen.reached(1)
      #expect(seen.elements[0] < 2_000)
    }
  }

  @Test func `an acceptance between two refusals keeps the client going`() async throws {
    try await Self.run { _, server, client, key in
      for _ in 0..<3 {
        key.text = "wrong"
        _ = try await failure { try await client.request(.echo, [1]) }
        key.text = "key-ann"
        try await client.expectEcho([1])
      }
      #expect(await Self.refused(server) == 3)
    }
  }

  @Test func `a rule that refuses a request is no refusal of the client`() async throws {
    try await Self.run("key-ann") { server in
      server.route(7, requires: .principal(named: "bob")) { _ in [] }
    } _: { _, _, client, _ in
      for _ in 0..<3 {
        let error = try await failure { try await client.request(7, []) }
        #expect(error.code == .rejected && error.response == .forbidden, "\(error)")
      }
      try await client.expectEcho([1])
    }
  }

  @Test func `to end the connections of a principal ends no request over a short link`()
    async throws
  {
    let goOn = Latch()
    try await Self.run("key-ann") { server in
      server.route(7) { request in
        await goOn.wait()
        return request.body
      }
    } _: { stage, server, client, _ in
      let task = client.submit(7, [5])
      try await stage.until { await server.counters().requestsRunning == 1 }
      #expect(await server.endConnections(of: "ann") == 0)
      try await stage.clientLoop.sleep(for: .seconds(1))
      goOn.open()
      #expect(try await task.value == [5])
    }
  }

  @Test func `the long link goes on trying where short links are not accepted`() async throws {
    try await Stage.pair(
      in: .bothWays,
      server: {
        $0.identity.authenticate = { request in
          if request.isShortLink { throw Rejection(.forbidden, "not this way") }
          return .anonymous
        }
      }
    ) { stage, server, client in
      stage.simulation?.network.setConnects(.refused, to: server.addresses[0])
      for _ in 0..<10 {
        let error = try await failure { try await client.request(.echo, [1]) }
        #expect(error.code == .notAccepted && error.response == .forbidden, "\(error)")
      }
      #expect(await Self.refused(server) == 2)
      stage.simulation?.network.setConnects(nil, to: server.addresses[0])
      try await stage.until { client.state.isConnected }
      try await client.expectEcho([1])
    }
  }
}
