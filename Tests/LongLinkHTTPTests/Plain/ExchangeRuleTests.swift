// SPDX-License-Identifier: Apache-2.0

#if HTTP
import AsyncHTTPClient
import Foundation
import LongLinkCore
import LongLinkDriver
@testable import LongLinkHTTP
import LongLinkUploads
import NIOCore
import Synchronization
import Testing

extension HTTPTests {
  /// What an exchange may send again, tell, keep and wait for.
  @Suite struct ExchangeRuleTests {
    @Test func `a body that can be read once is not sent again behind a probe`() async throws {
      try await RawServer.answering { request in
        request.body.isEmpty ? http("200 OK") : http("307 Go", ["Location: /b"])
      } body: { server in
        try await withService { service in
          var body = HTTPBody.content(.bytes(Array("secret".utf8)), contentType: "text/plain")
          body.isReplayable = false
          var request = HTTPRequest(.post, server.url())
          request.body = body
          request.authentication = .challenged(HTTPCredentials(user: "me", password: "open"))
          let error = try await linkFailure { try await service.send(request) }
          #expect(error.code == .rejected && error.response == 307, "\(error)")
          #expect(server.received.map(\.body.count) == [0, 6])
        }
      }
    }

    @Test func `another origin gets no secrets of a call`() async throws {
      try await RawServer.answering { _ in
        http("200 OK")
      } body: { other in
        let there = other.url("/there")
        try await RawServer.answering { _ in
          http("302 Go", ["Location: \(there)"])
        } body: { server in
          try await withService { service in
            let exchange = HTTPExchange(HTTPRequest(.get, server.url()), on: service.core)
            exchange.extraFields = ["authorization": "a", "Cookie": "c", "X-Open": "o"]
            _ = try await exchange.reply()
            let first = try #require(server.received.first)
            #expect(first["authorization"] == "a" && first["cookie"] == "c")
            let second = try #require(other.received.first)
            #expect(second["authorization"] == nil && second["cookie"] == nil)
            #expect(second["x-open"] == "o")
          }
        }
      }
    }

    @Test func `a kept response is not for the secrets of a call`() async throws {
      try await RawServer.answering { _ in
        http("200 OK", ["Cache-Control: max-age=60"])
      } body: { server in
        try await withService(HTTPConfiguration(cacheBytes: 100_000)) { service in
          var request = HTTPRequest(.get, server.url())
          request.usesCache = true
          for user in ["a", "b"] {
            let exchange = HTTPExchange(request, on: service.core)
            exchange.extraFields["authorization"] = user
            let reply = try await exchange.reply()
            #expect(!reply.isFromCache)
          }
          #expect(server.received.map { $0["authorization"] } == ["a", "b"])
        }
      }
    }

    @Test func `a change drops what was kept, and a 304 renews only its own tag`() async throws {
      var cache = HTTPCache(limit: 10_000)
      let start = LinkInstant(nanoseconds: 0)
      let reply = HTTPReply(
        status: 200, fields: ["ETag": "new"], url: "u", body: [], isFromCache: false)
      cache.store(reply, for: "u", [:], at: start, date: 0)
      cache.refresh("u", ["Cache-Control": "max-age=60"], tag: "old", at: start, date: 0)
      if case .fresh = cache.find("u", [:], at: start) { Issue.record("renewed by another's tag") }
      cache.refresh("u", ["Cache-Control": "max-age=60"], tag: "new", at: start, date: 0)
      guard case .fresh = cache.find("u", [:], at: start) else {
        Issue.record("not renewed")
        return
      }
      try await RawServer.answering { request in
        let named =
          switch request.target {
          case "/Other": "Location: http://localhost:1/"
          case "/": "X: y"
          default: "\(request.target.dropFirst()): /"
          }
        return http("200 OK", ["Cache-Control: max-age=60", named])
      } body: { server in
        try await withService(HTTPConfiguration(cacheBytes: 100_000)) { service in
          var request = HTTPRequest(.get, server.url())
          request.usesCache = true
          try await service.succeed(request)
          #expect(try await service.send(request).isFromCache)
          try await service.succeed(HTTPRequest(.put, server.url()))
          #expect(try await service.send(request).isFromCache == false)
          // The response to another URL names this one.
          for field in ["Location", "Content-Location"] {
            try await service.succeed(HTTPRequest(.post, server.url("/\(field)")))
            #expect(try await service.send(request).isFromCache == false)
          }
          // Another origin's are its own matter.
          try await service.succeed(HTTPRequest(.post, server.url("/Other")))
          #expect(try await service.send(request).isFromCache)
        }
      }
    }

    @Test func `a connection that ends is lost, and not cancelled`() {
      let purpose = ExchangePurpose(
        operation: "GET u", type: nil, deadline: nil, idleTimeout: .seconds(1),
        connectTimeout: .seconds(1))
      let errors: [any Error] = [
        HTTPClientError.cancelled, ChannelError.ioOnClosedChannel, ChannelError.alreadyClosed,
      ]
      for error in errors {
        let failure = purpose.failure(of: error, nil, past: .notSent)
        #expect(failure.code == .connectionLost && failure.delivery == .notSent, "\(error)")
      }
      #expect(purpose.failure(of: CancellationError(), nil, past: .sent).code == .cancelled)
    }

    @Test func `who reads while the service closes hears that, and all closers wait`() async throws
    {
      try await RawServer.run { connection in
        guard try await connection.request() != nil else { return }
        try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab")
        try await connection.untilEnd()
      } body: { server in
        let service = try HTTPService()
        let response = try await service.open(HTTPRequest(.get, server.url()))
        async let first: Void = service.close()
        async let second: Void = service.close()
        let error = try await linkFailure {
          for try await _ in response.chunks {}
        }
        #expect(error.code == .closed, "\(error)")
        _ = await (first, second)
      }
    }

    @Test func `a response is read to its end without the service`() async throws {
      let dropped = Mutex(false)
      try await RawServer.run { connection in
        guard try await connection.request() != nil else { return }
        try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
        try await until { dropped.withLock { $0 } }
        try await connection.send("body")
      } body: { server in
        let response = try await HTTPService().open(HTTPRequest(.get, server.url()))
        dropped.withLock { $0 = true }
        var bytes: [UInt8] = []
        for try await chunk in response.chunks { bytes += chunk }
        #expect(bytes == Array("body".utf8))
      }
    }

    @Test func `the deadline ends the wait for a token`() async throws {
      let tokens = HTTPBearerTokens { _ in
        try await Task.sleep(for: .seconds(600))
        return ""
      }
      try await withService { service in
        var request = HTTPRequest(.get, "http://127.0.0.1:1/")
        request.authentication = .bearer(tokens)
        request.timeout = .milliseconds(50)
        let error = try await linkFailure { try await service.send(request) }
        #expect(error.code == .deadlineExceeded && error.delivery == .notSent, "\(error)")
      }
    }

    @Test func `a download that begins as another ends leaves the whole file`() async throws {
      let folder = FileManager.default.temporaryDirectory
        .appending(path: "longlink-http-\(UUID().uuidString)")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(at: folder) }
      for round in 0..<200 {
        let path = folder.appending(path: "\(round)").path
        let first = try DownloadFile(for: path)
        let second = Task.detached {
          while true {
            guard let file = try? DownloadFile(for: path) else {
              await Task.yield()
              continue
            }
            _ = try file.begin("u", tag: nil, total: nil)
            file.unlock()
            return
          }
        }
        _ = try first.begin("u", tag: nil, total: nil)
        try first.write([1, 2, 3], at: 0)
        try first.finish()
        first.unlock()
        try await second.value
        #expect(try Data(contentsOf: URL(filePath: path)) == Data([1, 2, 3]))
      }
    }

    @Test func `a range without the file's size ends where it says`() {
      #expect(ContentRange("bytes 5-9/*")?.last == 9)
      #expect(ContentRange("bytes 5-7/10")?.total == 10)
      #expect(ContentRange("bytes 5-\(UInt64.max)/*") == nil)
    }
  }
}
#endif
