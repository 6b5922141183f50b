// SPDX-License-Identifier: Apache-2.0

#if HTTP
import LongLink
import LongLinkCalls
@testable import LongLinkHTTP
import LongLinkJSON
import LongLinkReaders
import LongLinkUploads
import Synchronization
import Testing

extension HTTPTests {
  /// Endpoints of HTTP in the layer that applications call.
  @Suite struct EndpointTests {
    struct Node: Codable, Equatable {
      var name: String
    }

    /// Runs a body with a call client, whose own server nobody ever asks.
    private func withCalls(
      _ configuration: CallConfiguration = CallConfiguration(),
      http: HTTPConfiguration = HTTPConfiguration(),
      _ body: (CallClient, HTTPService) async throws -> Void
    ) async throws {
      let client = try LongLinkClient(to: .host("127.0.0.1", port: 1))
      let api = try CallClient(client, configuration)
      try await withService(http) { service in
        try await body(api, service)
        await client.close()
      }
      let counters = await api.counters()
      #expect(counters.callsOpen == 0 && counters.exchangesOpen == 0)
    }

    private func nodes(_ server: RawServer) -> HTTPEndpoint<String, [UInt8]> {
      HTTPEndpoint(.get, "nodes", of: "feed") { path in HTTPRequest(.get, server.url(path)) }
    }

    /// What a call that has to fail fails with.
    private func failure<Value>(
      _ body: () async throws(CallError) -> Value
    ) async throws -> CallError {
      do throws(CallError) {
        _ = try await body()
      } catch {
        return error
      }
      Issue.record("no error")
      throw CancellationError()
    }

    @Test func `JSON goes there and back`() async throws {
      try await RawServer.answering { request in
        http(
          "200 OK", ["Content-Type: application/json"],
          String(decoding: request.body, as: UTF8.self))
      } body: { server in
        try await withCalls { api, service in
          let echo = HTTPEndpoint<JSONBody<Node>, JSONBody<Node>>(
            .post, "echo", url: server.url("/e"))
          let reply = try await api.value(of: echo(JSONBody(Node(name: "a")), over: service))
          #expect(reply.value == Node(name: "a"))
          #expect(server.received.first?["content-type"] == "application/json")
          #expect(server.received.first?.method == "POST")
        }
      }
    }

    @Test func `no request over HTTP runs once`() async throws {
      try await RawServer.answering { _ in
        http("200 OK")
      } body: { server in
        try await withCalls { api, service in
          var request = HTTPRequest(.post, server.url("/x"))
          request.retry = .once
          let plain = try await linkFailure { try await service.send(request) }
          #expect(plain.code == .unsupported && plain.delivery == .notSent, "\(plain)")
          #expect(plain.detail == "no request over HTTP runs once", "\(plain)")
          let ticket = try #require(OnceTicket(key: [9]))
          for options in [RequestOptions(retry: .once), RequestOptions(ticket: ticket)] {
            let call = nodes(server)("/x", over: service, policy: CallPolicy(options))
            let error = try await failure { () throws(CallError) in
              try await api.value(of: call)
            }
            #expect(error.link.code == .unsupported && error.delivery == .notSent, "\(error)")
          }
          #expect(server.received.isEmpty)
        }
      }
    }

    @Test func `identical calls are sent once, and all hear`() async throws {
      let isOpen = Mutex(false)
      try await RawServer.run { connection in
        while try await connection.request() != nil {
          try await until { isOpen.withLock { $0 } }
          try await connection.send(http("200 OK", [], "answer"))
        }
      } body: { server in
        try await withCalls { api, service in
          let nodes = nodes(server)
          async let first = api.value(of: nodes("/x", over: service))
          async let second = api.value(of: nodes("/x", over: service))
          async let other = api.value(of: nodes("/y", over: service))
          try await until { await api.counters().calls == 3 }
          isOpen.withLock { $0 = true }
          let replies = try await [first, second, other]
          #expect(replies == Array(repeating: Array("answer".utf8), count: 3))
          #expect(await api.counters().shared == 1)
          #expect(server.received.count == 2)
        }
      }
    }

    @Test func `the cache, its events and its invalidation hold`() async throws {
      try await RawServer.answering { _ in
        http("200 OK", [], "x")
      } body: { server in
        try await withCalls { api, service in
          let nodes = nodes(server)
          let call = nodes("/", over: service, policy: CallPolicy(cache: CachePolicy()))
          var events = api.events(of: nodes.type).makeAsyncIterator()
          for _ in 0..<3 { _ = try await api.value(of: call) }
          #expect(server.received.count == 1)
          #expect(await api.counters().cacheHits == 2)
          let event = await events.next()
          #expect(event?.type == nodes.type && (try? event?.result.get()) == Array("x".utf8))
          api.invalidate(call)
          _ = try await api.value(of: call)
          #expect(server.received.count == 2)
        }
      }
    }

    @Test func `a group makes calls, a few at a time`() async throws {
      try await RawServer.answering {
        http("200 OK", [], $0.target)
      } body: { server in
        try await withCalls { api, service in
          let nodes = nodes(server)
          let calls = (0..<20).map { nodes("/\($0)", over: service) }
          let values = try await api.group(calls, maxConcurrent: 3).values
          #expect(values.map { String(decoding: $0, as: UTF8.self) } == (0..<20).map { "/\($0)" })
          #expect(server.connectionCount <= 3)
        }
      }
    }

    @Test func `a status is the same kind of error as a link's`() async throws {
      try await RawServer.answering { request in
        request.target.hasPrefix("/404")
          ? http("404 No", ["Retry-After: 7"], "nothing here") : http("503 Busy", [], "later")
      } body: { server in
        try await withCalls { api, service in
          let nodes = nodes(server)
          let missing = try await failure { () throws(CallError) in
            try await api.value(of: nodes("/404?secret", over: service))
          }
          #expect(missing.code.rawValue == 404 && missing.delivery == .answered)
          #expect(missing.text == ErrorTexts.english.texts[missing.code])
          #expect(missing.link.messageType == nodes.type)
          #expect(missing.link.retryAfter == .seconds(7))
          #expect(String(decoding: missing.link.body, as: UTF8.self) == "nothing here")
          #expect(missing.link.operation == "GET \(server.url("/404"))")
          #expect(!missing.description.contains("secret"))
          let busy = try await failure { () throws(CallError) in
            try await api.value(of: nodes("/", over: service))
          }
          #expect(busy.code.rawValue == 503 && busy.delivery == .sent)
          #expect(busy.text.contains("not known whether"))
        }
      }
    }

    @Test func `a deadline and a cancel end the exchange, and tell what may have happened`()
      async throws
    {
      try await RawServer.run { connection in
        while try await connection.request() != nil {}
      } body: { server in
        try await withCalls { api, service in
          let nodes = nodes(server)
          let policy = CallPolicy(RequestOptions(timeout: .seconds(2)))
          let late = try await failure { () throws(CallError) in
            try await api.value(of: nodes("/", over: service, policy: policy))
          }
          #expect(late.code == .deadlineExceeded, "\(late)")
          let task = Task { try await api.value(of: nodes("/c", over: service)) }
          // Before that, a connection may be left that carries nothing, and is kept for later.
          try await until { server.received.contains { $0.target == "/c" } }
          task.cancel()
          let result = await task.result
          guard case .failure(let error as CallError) = result else {
            Issue.record("\(result)")
            return
          }
          #expect(error.code == .cancelled)
          try await until { server.openCount == 0 }
        }
      }
    }

    @Test func `nothing listens: the request did not leave`() async throws {
      let free = Mutex("")
      try await RawServer.answering { _ in
        ""
      } body: { server in
        free.withLock { $0 = server.url() }
      }
      let url = free.withLock { $0 }
      try await withCalls { api, service in
        let nodes = HTTPEndpoint<String, [UInt8]>(.get, "n") { HTTPRequest(.get, $0) }
        for (url, code) in [
          (url, CallErrorCode.connectFailed), ("http://name.invalid/", .connectFailed),
          ("ftp://a/", .encodingFailed), ("http://u:p@a/", .encodingFailed), ("", .encodingFailed),
        ] {
          let error = try await failure { () throws(CallError) in
            try await api.value(of: nodes(url, over: service))
          }
          #expect(error.code == code && error.delivery == .notSent, "\(error)")
        }
      }
    }

    @Test func `closing the client ends its calls`() async throws {
      try await RawServer.run {
        try await $0.untilEnd()
      } body: { server in
        try await withCalls { api, service in
          let nodes = nodes(server)
          let task = Task { try await api.value(of: nodes("/", over: service)) }
          try await until { service.counters.requests == 1 }
          await api.client.close()
          guard case .failure(let error as CallError) = await task.result else { return }
          #expect(error.code == .closed)
          let after = try await failure { () throws(CallError) in
            try await api.value(of: nodes("/", over: service))
          }
          #expect(after.code == .closed)
        }
      }
    }

    @Test func `a closed service takes no calls`() async throws {
      let service = try HTTPService()
      await service.close()
      let error = try await linkFailure { try await service.send(HTTPRequest(.get, "http://a/")) }
      #expect(error.code == .closed && error.delivery == .notSent)
    }

    @Test func `metadata and keys become fields`() async throws {
      try await RawServer.answering { _ in
        http("200 OK")
      } body: { server in
        try await withCalls { api, service in
          let options = RequestOptions(
            idempotencyKey: [1, 0xAB], metadata: ["traceparent": "00-1-2-01"])
          let call = nodes(server)("/", over: service, policy: CallPolicy(options))
          _ = try await api.value(of: call)
          let request = try #require(server.received.first)
          #expect(request["traceparent"] == "00-1-2-01" && request["idempotency-key"] == "\"01ab\"")
          #expect(request["longlink-flight"] == nil)
        }
      }
    }

    @Test func `a lost connection is tried again only where that is safe`() async throws {
      try await RawServer.run { connection in
        _ = try await connection.request()
        // Gone, without a response, except for the third.
        if connection.number % 3 == 0 {
          try await connection.send(http("200 OK", ["Connection: close"]))
        }
      } body: { server in
        try await withCalls { api, service in
          let post = HTTPEndpoint<String, [UInt8]>(.post, "p") { _ in
            HTTPRequest(.post, server.url())
          }
          let error = try await failure { () throws(CallError) in
            try await api.value(of: post("", over: service))
          }
          #expect(error.code == .connectionLost && error.delivery == .sent)
          #expect(server.received.count == 1)
          _ = try await api.value(of: nodes(server)("/", over: service))
          #expect(server.received.count == 3 && service.counters.retries == 1)
        }
      }
    }

    @Test func `there is a bound of exchanges`() async throws {
      try await RawServer.run {
        try await $0.untilEnd()
      } body: { server in
        try await withService(HTTPConfiguration(maxExchanges: 2)) { service in
          let tasks = (0..<2).map { _ in
            Task { try await service.send(HTTPRequest(.get, server.url())) }
          }
          try await until { service.counters.open == 2 }
          let error = try await linkFailure {
            try await service.send(HTTPRequest(.get, server.url()))
          }
          #expect(error.code == .overloaded && error.delivery == .notSent)
          for task in tasks { task.cancel() }
          for task in tasks { _ = await task.result }
          try await until { service.counters.open == 0 }
        }
      }
    }
  }
}
#endif
