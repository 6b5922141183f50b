// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Logging
import Synchronization
import Testing

/// Requests and streams over short links, where the long port is blocked or not among the ways.
@Suite struct ShortLinkTests {
  static let gatewayAddress = SocketAddress.ipv4(10, 0, 0, 1, port: 8_080)

  /// Runs a body with a server, its gateway and a client that has short links alone.
  static func short(
    seed: UInt64 = 1, configure: (inout ClientConfiguration) -> Void = { _ in },
    server: @Sendable @escaping (inout ServerConfiguration) -> Void = { _ in },
    setUp: @Sendable @escaping (LongLinkServer) -> Void = { routes($0) },
    _ body: @escaping @Sendable (Stage, LongLinkServer, LongLinkClient) async throws -> Void
  ) async throws {
    var configuration = ClientConfiguration(ways: [.simulatedShort(to: gatewayAddress)])
    configuration.logger.logLevel = .critical
    configure(&configuration)
    let configured = configuration
    try await Stage.simulate(seed: seed) { stage, _ in
      let made = try await stage.serve(setUp: setUp, configure: server)
      _ = try await stage.gateway(for: made)
      let client = try stage.client(to: []) { $0 = configured }
      try await body(stage, made, client)
    }
  }

  /// 10 sends items, 11 counts those of the requester, 13 ends in an error, 14 answers early.
  static func routes(_ server: LongLinkServer) {
    server.routeBasics()
    server.routeStream(10, .responseItems) { request, _, writer in
      for number in 0..<Int(request.body[0]) {
        try await writer.write([UInt8](repeating: UInt8(number), count: Int(request.body[1]) * 100))
      }
      return Array("done".utf8)
    }
    server.routeStream(11, .requestItems) { _, items, _ in
      var sum = 0
      for try await item in items { sum += item.count }
      return Array("\(sum)".utf8)
    }
    server.routeStream(12, [.requestItems, .responseItems]) { _, _, _ in [] }
    server.routeStream(13, .responseItems) { _, _, writer in
      try await writer.write([1])
      throw Rejection(1_234, body: [9])
    }
    server.routeStream(14, .requestItems) { _, items, _ in
      for try await _ in items { return Array("enough".utf8) }
      return []
    }
  }

  // MARK: Requests

  @Test func `a request and its answer go over a short link`() async throws {
    try await Self.short { stage, server, client in
      try await client.expectEcho([1, 2, 3])
      #expect(client.state == .short("short://10.0.0.1:8080"))
      let counters = await client.counters()
      #expect(counters.shortLinkRequests["short://10.0.0.1:8080"] == 1)
      #expect(counters.connects == 0)
      try await stage.until { await server.counters().openConnections == 0 }
      #expect(await server.counters().shortLinks == 1)
    }
  }

  @Test func `bodies in fragments go both ways`() async throws {
    try await Self.short { _, _, client in
      let body = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
      let answer = try await client.request(.echo, body)
      #expect(answer == body)
    }
  }

  @Test func `a handler's error, an unknown type and a refusal are as ever`() async throws {
    try await Self.short { _, _, client in
      let failed = try await failure { try await client.request(.fail, []) }
      #expect(failed.response == 1_234 && failed.delivery == .answered && failed.body == [9, 8, 7])
      let unknown = try await failure { try await client.request(99, []) }
      #expect(unknown.response == .unknownType && unknown.delivery == .refused)
    }
  }

  @Test func `a cancel ends the exchange, and cancels the handler`() async throws {
    try await Self.short { stage, server, client in
      let task = client.submit(.hang, [], options: RequestOptions())
      try await stage.until { await server.counters().requestsRunning == 1 }
      task.cancel()
      let error = try await failure { try await task.value }
      #expect(error.code == .cancelled && error.delivery == .sent)
      try await stage.until { await server.counters().openConnections == 0 }
      #expect(await server.counters().connections.handlersAbandoned == 1)
    }
  }

  @Test func `a deadline ends the exchange on both sides`() async throws {
    try await Self.short { stage, server, client in
      let options = RequestOptions(timeout: .seconds(2))
      let error = try await failure { try await client.request(.hang, [], options: options) }
      #expect(error.code == .deadlineExceeded && error.delivery == .sent)
      try await stage.until { await server.counters().openConnections == 0 }
    }
  }

  @Test func `a request longer than the pings' interval stays, and the pings are not answered`()
    async throws
  {
    try await Self.short(setUp: { server in
      server.route(5) { request in
        try await request.clock.sleep(for: .seconds(50))
        return [5]
      }
    }) { _, server, client in
      let options = RequestOptions(timeout: .seconds(100))
      let answer = try await client.request(5, [], options: options)
      #expect(answer == [5])
      let counters = await server.counters().connections
      #expect(counters.pingsSent == 3)
      #expect(await client.counters().connections.pingsReceived == 3)
    }
  }

  @Test func `eight exchanges run at once, and others wait in order of priority`() async throws {
    let order = Mutex<[UInt8]>([])
    let goOn = Latch()
    try await Self.short(setUp: { server in
      server.route(5) { request in
        order.withLock { $0.append(request.body[0]) }
        await goOn.wait()
        return request.body
      }
    }) { stage, server, client in
      let first = (0..<8).map { client.submit(5, [UInt8($0)], options: RequestOptions()) }
      try await stage.until { await server.counters().requestsRunning == 8 }
      let late = client.submit(5, [20], options: RequestOptions())
      let urgent = client.submit(5, [21], options: RequestOptions(priority: 7))
      try await stage.clientLoop.sleep(for: .seconds(1))
      #expect(await server.counters().requestsRunning == 8)
      #expect(await client.counters().requestsWaiting == 2)
      goOn.open()
      for task in first + [late, urgent] { _ = try await task.value }
      #expect(order.withLock { Array($0.suffix(2)) } == [21, 20])
      #expect(await server.counters().shortLinks == 10)
    }
  }

  @Test func `ordered requests go one after the other`() async throws {
    let order = Mutex<[UInt8]>([])
    try await Self.short(setUp: { server in
      server.route(5) { request in
        order.withLock { $0.append(request.body[0]) }
        return request.body
      }
    }) { _, _, client in
      let options = RequestOptions(order: .ordered)
      let tasks = (0..<20).map { client.submit(5, [UInt8($0)], options: options) }
      for task in tasks { _ = try await task.value }
      #expect(order.withLock { $0 } == (0..<20).map { UInt8($0) })
    }
  }

  // MARK: Streams

  @Test func `items of the server come in order, and a slow reader holds the server back`()
    async throws
  {
    try await Self.short { stage, server, client in
      var count = 0
      let stream = client.stream(10, [200, 100])
      for try await item in stream {
        #expect(item == [UInt8](repeating: UInt8(count), count: 10_000))
        if count == 0 {
          // Nothing is taken: the server's items stop, and its memory stays small.
          try await stage.clientLoop.sleep(for: .seconds(30))
          let held = await server.counters().bytesUnwritten
          #expect(held < 1_000_000)
          #expect(await client.counters().connections.itemsReceived < 60)
        }
        count += 1
      }
      #expect(count == 200)
      #expect(stream.response == Array("done".utf8))
    }
  }

  @Test func `items of the client come, and then the answer`() async throws {
    try await Self.short { _, _, client in
      let response = try await client.sendItems(11, []) { writer in
        for size in [0, 1, 100_000, 3_000_000] {
          try await writer.write([UInt8](repeating: 1, count: size))
        }
      }
      #expect(response == Array("3100001".utf8))
    }
  }

  @Test func `a deaf handler holds the client back, and the server's memory stays small`()
    async throws
  {
    try await Self.short(setUp: { server in
      server.routeStream(5, .requestItems) { request, items, _ in
        try await request.clock.sleep(for: .seconds(30))
        var count = 0
        for try await _ in items { count += 1 }
        return [UInt8(count)]
      }
    }) { stage, server, client in
      let written = Mutex(0)
      let sending = stage.spawn {
        try await client.sendItems(5, []) { writer in
          for _ in 0..<200 {
            try await writer.write([UInt8](repeating: 1, count: 20_000))
            written.withLock { $0 += 1 }
          }
        }
      }
      try await stage.clientLoop.sleep(for: .seconds(20))
      #expect(written.withLock { $0 } < 60)
      #expect(await server.counters().bytesHeld < 500_000)
      let answer = try await sending.value
      #expect(answer == [200])
    }
  }

  @Test func `a stream's error comes behind its items`() async throws {
    try await Self.short { _, _, client in
      var items: [[UInt8]] = []
      let error = try await failure {
        for try await item in client.stream(13, []) { items.append(item) }
      }
      #expect(error.response == 1_234 && error.itemsReceived == 1 && items == [[1]])
    }
  }

  @Test func `an early answer ends the writer`() async throws {
    try await Self.short { stage, server, client in
      let response = try await client.sendItems(14, []) { writer in
        do throws(LongLinkError) {
          while true { try await writer.write([UInt8](repeating: 1, count: 10_000)) }
        } catch {
          #expect(error.code == .streamEnded)
        }
      }
      #expect(response == Array("enough".utf8))
      try await stage.until { await server.counters().openConnections == 0 }
    }
  }

  @Test func `both directions fail before anything is sent`() async throws {
    try await Self.short { _, server, client in
      let error = try await failure { try await client.exchange(12, []) { _, _ in } }
      #expect(error.code == .unsupported && error.delivery == .notSent)
      #expect(error.detail.contains("one direction"))
      #expect(await server.counters().connections.requestsReceived == 0)
    }
  }

  // MARK: What a short link does not have

  @Test func `pushes and requests back fail by name`() async throws {
    let caught = Mutex<[LongLinkError]>([])
    try await Self.short(setUp: { server in
      server.route(5) { request in
        let push = try await failure { try await request.peer.push(1, []) }
        let back = try await failure { try await request.peer.request(1, []) }
        caught.withLock { $0 += [push, back] }
        return []
      }
    }) { _, server, client in
      _ = try await client.request(5, [])
      let errors = caught.withLock { $0 }
      #expect(errors.map(\.code) == [.unsupported, .unsupported])
      #expect(errors.allSatisfy { $0.detail.contains("short link") })
      let push = try await failure { try await client.push(1, []) }
      #expect(push.code == .unsupported)
      try await client.connect()
      #expect(await server.peers().isEmpty)
    }
  }

  @Test func `a short link's peer is in no broadcast and calls no hook`() async throws {
    let hooks = Mutex(0)
    try await Self.short(setUp: { server in
      Self.routes(server)
      server.onConnect { _ in hooks.withLock { $0 += 1 } }
      server.onDisconnect { _ in hooks.withLock { $0 += 1 } }
    }) { stage, server, client in
      let task = client.submit(.hang, [], options: RequestOptions())
      try await stage.until { await server.counters().requestsRunning == 1 }
      #expect(await server.peers().isEmpty)
      task.cancel()
      _ = try await failure { try await task.value }
      try await stage.until { await server.counters().openConnections == 0 }
      #expect(hooks.withLock { $0 } == 0)
    }
  }
}

extension LongLinkClient {
  /// Sends a request that the server echoes.
  func expectEcho(_ body: [UInt8]) async throws {
    let answer = try await request(.echo, body)
    #expect(answer == body)
  }
}
