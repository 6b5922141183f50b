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
  // MARK: Requests

  @Test func `a request and its answer go over a short link`() async throws {
    try await Stage.pair(in: .short) { stage, server, client in
      try await client.expectEcho([1, 2, 3])
      #expect(client.state == .short(Way.gatewayName))
      let counters = await client.counters()
      #expect(counters.shortLinkRequests[Way.gatewayName] == 1)
      #expect(counters.connects == 0)
      try await stage.until { await server.counters().openConnections == 0 }
      #expect(await server.counters().shortLinks == 1)
    }
  }

  @Test func `bodies in fragments go both ways`() async throws {
    try await Stage.pair(in: .short) { _, _, client in
      let body = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
      let answer = try await client.request(.echo, body)
      #expect(answer == body)
    }
  }

  @Test func `a handler's error, an unknown type and a refusal are as ever`() async throws {
    try await Stage.pair(in: .short) { _, _, client in
      let failed = try await failure { try await client.request(.fail, []) }
      #expect(failed.response == 1_234 && failed.delivery == .answered && failed.body == [9, 8, 7])
      let unknown = try await failure { try await client.request(99, []) }
      #expect(unknown.response == .unknownType && unknown.delivery == .refused)
    }
  }

  @Test func `a cancel ends the exchange, and cancels the handler`() async throws {
    try await Stage.pair(in: .short) { stage, server, client in
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
    try await Stage.pair(in: .short) { stage, server, client in
      let options = RequestOptions(timeout: .seconds(2))
      let error = try await failure { try await client.request(.hang, [], options: options) }
      #expect(error.code == .deadlineExceeded && error.delivery == .sent)
      try await stage.until { await server.counters().openConnections == 0 }
    }
  }

  @Test func `a request longer than the pings' interval stays, and the pings are not answered`()
    async throws
  {
    try await Stage.serving(in: .short) { server in
      server.route(5) { request in
        try await request.clock.sleep(for: .seconds(50))
        return [5]
      }
    } _: { _, server, client in
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
    try await Stage.serving(in: .short) { server in
      server.route(5) { request in
        order.withLock { $0.append(request.body[0]) }
        await goOn.wait()
        return request.body
      }
    } _: { stage, server, client in
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
    try await Stage.serving(in: .short) { server in
      server.route(5) { request in
        order.withLock { $0.append(request.body[0]) }
        return request.body
      }
    } _: { _, _, client in
      let options = RequestOptions(isOrdered: true)
      let tasks = (0..<20).map { client.submit(5, [UInt8($0)], options: options) }
      for task in tasks { _ = try await task.value }
      #expect(order.withLock { $0 } == (0..<20).map { UInt8($0) })
    }
  }

  // MARK: Streams

  @Test func `items of the server come in order, and a slow reader holds the server back`()
    async throws
  {
    try await Stage.pair(in: .short) { stage, server, client in
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

  @Test func `a deaf handler holds the client back, and the server's memory stays small`()
    async throws
  {
    try await Stage.serving(in: .short) { server in
      server.routeStream(5, .requestItems) { request, items, _ in
        try await request.clock.sleep(for: .seconds(30))
        var count = 0
        for try await _ in items { count += 1 }
        return [UInt8(count)]
      }
    } _: { stage, server, client in
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

  @Test func `both directions fail before anything is sent`() async throws {
    try await Stage.pair(in: .short) { _, server, client in
      let error = try await failure { try await client.exchange(12, []) { _, _ in } }
      #expect(error.code == .unsupported && error.delivery == .notSent)
      #expect(error.detail.contains("one direction"))
      #expect(await server.counters().connections.requestsReceived == 0)
    }
  }

  // MARK: What a short link does not have

  @Test func `pushes and requests back fail by name`() async throws {
    let caught = Mutex<[LongLinkError]>([])
    try await Stage.serving(in: .short) { server in
      server.route(5) { request in
        let push = try await failure { try await request.peer.push(1, []) }
        let back = try await failure { try await request.peer.request(1, []) }
        caught.withLock { $0 += [push, back] }
        return []
      }
    } _: { _, server, client in
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
    try await Stage.serving(in: .short) { server in
      server.routeBasics()
      server.onConnect { _ in hooks.withLock { $0 += 1 } }
      server.onDisconnect { _ in hooks.withLock { $0 += 1 } }
    } _: { stage, server, client in
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
