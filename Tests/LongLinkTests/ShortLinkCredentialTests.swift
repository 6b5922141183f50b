// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCore
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Logging
import Synchronization
import Testing

/// Short links whose credential comes late, or not at all, or that a server turns away.
@Suite struct ShortLinkCredentialTests {
  private struct Down: Error {}

  /// Runs a body with a client of short links alone, whose credential comes when `goOn` is open.
  private static func late(
    _ goOn: Latch,
    _ body: @escaping @Sendable (Stage, LongLinkServer, LongLinkClient) async throws -> Void
  ) async throws {
    try await Stage.pair(in: .short) {
      $0.timeouts.connect = .seconds(100)
      $0.identity.credential = {
        await goOn.wait()
        return Array("key-eve".utf8)
      }
    } server: {
      $0.identity.authenticate = { try AuthenticationTests.byKey($0) }
    } _: { stage, server, client in
      try await body(stage, server, client)
    }
  }

  private static let secondAddress = SocketAddress.ipv4(10, 0, 0, 1, port: 8_081)
  private static let twoWays: [Way] = [.short, .simulatedShort(to: secondAddress)]

  // MARK: Late credentials

  @Test func `a credential that comes to a suspended client opens nothing`() async throws {
    let goOn = Latch()
    try await Self.late(goOn) { stage, server, client in
      let task = client.submit(.echo, [1], options: RequestOptions(timeout: .seconds(100)))
      try await stage.clientLoop.sleep(for: .seconds(1))
      await client.suspend()
      goOn.open()
      try await stage.clientLoop.sleep(for: .seconds(2))
      #expect(await server.counters().shortLinks == 0)
      #expect(client.state == .suspended)
      client.resume()
      #expect(try await task.value == [1])
      #expect(await server.counters().shortLinks == 1)
    }
  }

  @Test func `no more than eight short links open after changes of the network`() async throws {
    let goOn = Latch()
    try await Self.late(goOn) { stage, server, client in
      let tasks = (0..<30).map { _ in
        client.submit(.hang, [1], options: RequestOptions(timeout: .seconds(1_000)))
      }
      try await stage.clientLoop.sleep(for: .seconds(1))
      for _ in 0..<3 {
        client.pathChanged()
        try await stage.clientLoop.sleep(for: .milliseconds(100))
      }
      goOn.open()
      try await stage.until { await server.counters().requestsRunning == 8 }
      try await stage.clientLoop.sleep(for: .seconds(10))
      #expect(await server.counters().shortLinks == 8)
      for task in tasks { task.cancel() }
      for task in tasks { _ = try? await task.value }
    }
  }

  @Test func `one that fails for a link that was given up changes nothing`() async throws {
    let goOn = Latch()
    try await Stage.pair(in: .short) {
      $0.identity.credential = {
        await goOn.wait()
        throw Down()
      }
    } _: { stage, server, client in
      let task = client.submit(.echo, [1], options: RequestOptions(timeout: .seconds(100)))
      try await stage.clientLoop.sleep(for: .seconds(1))
      await client.suspend()
      goOn.open()
      try await stage.clientLoop.sleep(for: .seconds(1))
      #expect(await client.counters().shortLinksFailed[Way.gatewayName] == 0)
      let options = RequestOptions(waitsForConnection: false)
      let error = try await failure { try await client.request(.echo, [1], options: options) }
      #expect(error.detail.contains("suspended"), "\(error)")
      task.cancel()
      _ = try? await task.value
    }
  }

  @Test func `a credential that the application cannot give is the fault of no way`() async throws {
    let calls = Tally<Int>()
    try await Stage.pair(in: .short) {
      $0.ways = Self.twoWays
      $0.identity.credential = {
        calls.add(0)
        if calls.count <= 3 { throw Down() }
        return [1]
      }
    } _: { stage, server, client in
      _ = try await stage.gateway(for: server, at: Self.secondAddress)
      let begin = stage.clientLoop.clock.now
      try await client.expectEcho([1])
      // A pause follows each failure, and the first way stays the first.
      #expect(begin.duration(to: stage.clientLoop.clock.now) > .milliseconds(500 + 1_000 + 2_000))
      #expect(client.state == .short(Way.gatewayName))
      #expect(calls.count == 4)
    }
  }

  // MARK: Servers that cannot tell who it is

  @Test func `a server that cannot tell who a client is gets pauses that grow`() async throws {
    let asked = Tally<Int>()
    try await Stage.pair(in: .short) {
      $0.identity.credential = { Array("key-eve".utf8) }
      $0.timeouts.request = .seconds(100)
    } server: {
      $0.identity.authenticate = { _ in
        asked.add(0)
        throw Down()
      }
    } _: { stage, server, client in
      let begin = stage.clientLoop.clock.now
      let error = try await failure { try await client.request(.echo, [1]) }
      #expect(error.response == .draining && error.delivery == .refused, "\(error)")
      #expect(error.detail.contains("cannot check"), "\(error)")
      #expect(asked.count == 6)
      let least = Duration.milliseconds(500 + 1_000 + 2_000 + 4_000 + 8_000)
      #expect(begin.duration(to: stage.clientLoop.clock.now) >= least)
      // Many requests ask no more often than one: no more than 8 links at a time, and pauses.
      let tasks = (0..<200).map { _ in
        client.submit(.echo, [1], options: RequestOptions(timeout: .seconds(20)))
      }
      for task in tasks { _ = try? await task.value }
      #expect(asked.count < 50, "\(asked.count)")
    }
  }

  @Test func `a way whose server cannot tell who a client is gives way to the next`()
    async throws
  {
    try await Stage.pair(in: .short) {
      $0.ways = Self.twoWays
    } server: {
      $0.identity.authenticate = { _ in throw Down() }
    } _: { stage, broken, client in
      let good = try await stage.serve()
      _ = try await stage.gateway(for: good, at: Self.secondAddress)
      for _ in 0..<5 { try await client.expectEcho([1]) }
      #expect(client.state == .short("short://10.0.0.1:8081"))
      #expect(await broken.counters().shortLinks == 1)
    }
  }

  // MARK: Refusals

  @Test func `links of one batch are refused once`() async throws {
    let isDown = Mutex(true)
    try await Stage.pair(in: .short) {
      $0.identity.credential = { Array("key-eve".utf8) }
    } server: {
      $0.identity.authenticate = { request in
        if isDown.withLock({ $0 }) { throw Rejection(.unauthenticated, "a glitch") }
        return try AuthenticationTests.byKey(request)
      }
    } _: { stage, server, client in
      let tasks = (0..<8).map { client.submit(.echo, [UInt8($0)], options: RequestOptions()) }
      for task in tasks {
        let error = try await failure { try await task.value }
        #expect(error.code == .notAccepted && error.delivery == .refused, "\(error)")
      }
      #expect(await server.counters().authentications.refused == 8)
      #expect(client.state == .short(Way.gatewayName))
      isDown.withLock { $0 = false }
      try await client.expectEcho([1])
    }
  }

  /// Runs a body with a client of both ways. Its server takes requests over short links, and
  /// connections if the credential is good.
  private static func halfRefused(
    _ body: @escaping @Sendable (Stage, LongLinkServer, LongLinkClient, Key) async throws -> Void
  ) async throws {
    let key = Key()
    try await Stage.pair(in: .bothWays) {
      $0.identity.sendsCredentialUnencrypted = true
      $0.identity.credential = { key.bytes }
    } server: {
      $0.identity.authenticate = { request in
        if request.isShortLink { return .anonymous }
        key.uses.add(())
        return try AuthenticationTests.byKey(request)
      }
    } _: { stage, server, client in
      try await body(stage, server, client, key)
    }
  }

  @Test func `short links go on carrying requests when connections are refused for good`()
    async throws
  {
    try await Self.halfRefused { stage, server, client, key in
      let tasks = (0..<40).map { client.submit(.echo, [UInt8($0)], options: RequestOptions()) }
      for (number, task) in tasks.enumerated() {
        let answer = try await task.value
        #expect(answer == [UInt8(number)])
      }
      try await stage.until { client.state == .short(Way.gatewayName) }
      // Nor does a change of the network stop them.
      try await stage.until { key.uses.count == 2 }
      try await stage.clientLoop.sleep(for: .seconds(1))
      client.pathChanged()
      try await client.expectEcho([1])
    }
  }

  @Test func `those that wait when connections are refused for good are carried`() async throws {
    try await Self.halfRefused { stage, server, client, key in
      let options = RequestOptions(timeout: .seconds(1_000))
      let tasks = (0..<40).map { _ in client.submit(.hang, [1], options: options) }
      try await stage.clientLoop.sleep(for: .seconds(20))
      #expect(key.uses.count == 2)
      #expect(await client.counters().requestsOpen == 40)
      #expect(await server.counters().requestsRunning == 8)
      for task in tasks { task.cancel() }
      for task in tasks { _ = try? await task.value }
    }
  }

  @Test func `requests over short links do not show a refused credential again`() async throws {
    try await Self.halfRefused { stage, server, client, key in
      try await client.expectEcho([1])
      try await stage.until { key.uses.count == 2 }
      for _ in 0..<20 {
        try await client.expectEcho([2])
        try await stage.clientLoop.sleep(for: .seconds(60))
      }
      #expect(key.uses.count == 2)
      // Another one is tried.
      key.text = "key-ann"
      try await client.expectEcho([3])
      try await stage.until { client.state.isConnected }
      #expect(key.uses.count == 3)
    }
  }
}
