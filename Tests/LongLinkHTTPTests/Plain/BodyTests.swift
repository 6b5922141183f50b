// SPDX-License-Identifier: Apache-2.0

#if HTTP
import Foundation
@testable import LongLinkHTTP
import LongLinkReaders
import LongLinkUploads
import Synchronization
import Testing

extension HTTPTests {
  /// Bodies of requests and responses, in memory and in chunks.
  @Suite struct BodyTests {
    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    @Test func `the fields of a form are encoded`() {
      guard case .bytes(let bytes) = HTTPBody.form([("a b", "ü&=+"), ("c", "~*-._")]).source else {
        Issue.record("no bytes")
        return
      }
      #expect(text(bytes) == "a+b=%C3%BC%26%3D%2B&c=%7E*-._")
    }

    @Test func `an upload has its exact length, is streamed, and tells its progress`() async throws
    {
      try await RawServer.answering {
        http("200 OK", [], "\($0.body.count)")
      } body: { server in
        try await withService { service in
          let seen = Mutex<[HTTPProgress]>([])
          var request = HTTPRequest(.put, server.url())
          let bytes = [UInt8](repeating: 7, count: 1_000_000)
          request.body = .content(.bytes(bytes), contentType: "a/b")
          request.progress = { progress in seen.withLock { $0.append(progress) } }
          let reply = try await service.send(request)
          #expect(text(reply.body) == "1000000")
          #expect(server.received[0]["content-length"] == "1000000")
          #expect(server.received[0]["content-type"] == "a/b")
          let all = seen.withLock { $0 }
          #expect(all.map(\.sent) == all.map(\.sent).sorted())
          #expect(all.last?.sent == 1_000_000 && all.last?.sentTotal == 1_000_000)
          #expect(all.last?.received == 7 && all.last?.receivedTotal == 7)
          #expect(all.count > 10)
        }
      }
    }

    @Test func `an unknown length is sent in chunks`() async throws {
      try await RawServer.answering {
        http("200 OK", [], "\($0.body.count)")
      } body: { server in
        try await withService { service in
          let pieces = (0..<50).map { [UInt8](repeating: UInt8($0), count: 1000) }
          var request = HTTPRequest(.post, server.url())
          request.body = .content(
            .sequence { _ in
              AsyncStream { c in
                pieces.forEach { c.yield($0) }; c.finish()
              }
            },
            contentType: "a/b")
          let reply = try await service.send(request)
          #expect(text(reply.body) == "50000")
          #expect(server.received[0]["transfer-encoding"] == "chunked")
        }
      }
    }

    @Test func `a file that changes ends the exchange by name`() async throws {
      try await withFolder { folder in
        let path = folder + "/f"
        // More than the buffers of a connection take before the server has changed the file.
        try Data().write(to: URL(filePath: path))
        try #require(FileHandle(forUpdatingAtPath: path)).truncate(atOffset: 100_000_000)
        try await RawServer.run { connection in
          _ = try await connection.request(withBody: false)
          try Data(repeating: 2, count: 10).write(to: URL(filePath: path))
          try await connection.untilEnd()
        } body: { server in
          try await withService { service in
            var request = HTTPRequest(.post, server.url())
            request.body = .multipart([.file("f", at: path)])
            let error = try await linkFailure { try await service.send(request) }
            #expect(error.code == .encodingFailed && error.detail.contains(path), "\(error)")
            #expect(error.delivery == .sent)
            request.body = .multipart([.file("f", at: path + "x")])
            let missing = try await linkFailure { try await service.send(request) }
            #expect(missing.code == .encodingFailed && missing.delivery == .notSent)
          }
        }
      }
    }

    @Test func `gzip is read, 204 and HEAD have no body`() async throws {
      try await RawServer.run { connection in
        while let request = try await connection.request() {
          switch request.target {
          case "/gzip":
            let body = GzipSamples.hello
            try await connection.send(
              "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: \(body.count)\r\n\r\n")
            try await connection.send(body)
          case "/204": try await connection.send("HTTP/1.1 204 No Content\r\n\r\n")
          default:
            try await connection.send(
              "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n")
          }
        }
      } body: { server in
        try await withService { service in
          let reply = try await service.send(HTTPRequest(.get, server.url("/gzip")))
          #expect(text(reply.body) == String(repeating: "hello ", count: 20))
          #expect(server.received[0]["accept-encoding"] == "gzip, deflate")
          let empty = try await service.send(HTTPRequest(.get, server.url("/204")))
          #expect(empty.status == 204 && empty.body == [])
          let head = try await service.send(HTTPRequest(.head, server.url("/head")))
          #expect(
            head.status == 200 && head.body == [] && head.fields["Content-Length"] == "99999999")
          #expect(server.connectionCount == 1)
        }
      }
    }

    @Test func `nodes appear one by one, and an error behind the seventh is told`() async throws {
      let next = AsyncStream.makeStream(of: Void.self)
      try await RawServer.run { connection in
        guard try await connection.request() != nil else { return }
        try await connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        func chunk(_ text: String) async throws {
          try await connection.send("\(String(text.utf8.count, radix: 16))\r\n\(text)\r\n")
        }
        try await chunk("<feed>")
        var turns = next.stream.makeAsyncIterator()
        for number in 1...7 {
          try await chunk("<node>\(number)</node>")
          _ = await turns.next()
        }
        try await chunk("<error>down</error></feed>")
        try await connection.send("0\r\n\r\n")
      } body: { server in
        try await withService { service in
          let response = try await service.open(HTTPRequest(.get, server.url()))
          var seen: [String] = []
          do {
            let elements = DocumentReader(response.chunks).elements(named: "node", error: "error")
            for try await node in elements {
              seen.append(node.text)
              next.continuation.yield()
            }
            Issue.record("no error")
          } catch let error as ReaderError {
            #expect(error.code == .errorElement && error.element?.text == "down")
          }
          #expect(seen == (1...7).map { "\($0)" })
        }
      }
    }

    @Test func `a reader holds the server back`() async throws {
      let sent = Mutex(0)
      try await RawServer.run { connection in
        guard try await connection.request() != nil else { return }
        try await connection.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        let block = [UInt8](repeating: 9, count: 65_536)
        for _ in 0..<1000 {
          try await connection.send(block)
          sent.withLock { $0 += block.count }
        }
      } body: { server in
        try await withService { service in
          let response = try await service.open(HTTPRequest(.get, server.url()))
          var received = 0
          for try await chunk in response.chunks {
            received += chunk.count
            // What the sockets' buffers take, and no more: on Linux up to 32 MiB and 4 MiB.
            let ahead = sent.withLock { $0 } - received
            if ahead > 48_000_000 { Issue.record("\(ahead) bytes were not held back") }
          }
          #expect(received == 65_536_000)
        }
      }
    }

    @Test func `a response that is dropped ends its connection, a second reader gets an error`()
      async throws
    {
      try await RawServer.run { connection in
        guard try await connection.request() != nil else { return }
        try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
        try await connection.untilEnd()
      } body: { server in
        try await withService { service in
          do {
            let response = try await service.open(HTTPRequest(.get, server.url()))
            var first = response.chunks.makeAsyncIterator()
            #expect(try await first.next() == Array("abc".utf8))
            let error = try await linkFailure {
              for try await _ in response.chunks {}
            }
            #expect(error.code == .streamEnded)
          }
          try await until { server.openCount == 0 }
          try await until { service.counters.open == 0 }
        }
      }
    }

    @Test func `the total time covers the body`() async throws {
      try await RawServer.run { connection in
        guard try await connection.request() != nil else { return }
        try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc")
        try await connection.untilEnd()
      } body: { server in
        try await withService { service in
          var request = HTTPRequest(.get, server.url())
          request.timeout = .milliseconds(400)
          let error = try await linkFailure { try await service.send(request) }
          #expect(error.code == .deadlineExceeded && error.detail.contains("deadline"), "\(error)")
        }
      }
    }

    @Test func `a completion hears once, and can be cancelled`() async throws {
      try await RawServer.run { connection in
        while let request = try await connection.request() {
          if request.target == "/" { try await connection.send(http("200 OK", [], "x")) }
        }
      } body: { server in
        try await withService { service in
          let replies = AsyncStream.makeStream(of: Result<HTTPReply, LongLinkError>.self)
          service.start(HTTPRequest(.get, server.url())) { replies.continuation.yield($0) }
          var iterator = replies.stream.makeAsyncIterator()
          let first = try #require(await iterator.next())
          #expect(try first.get().status == 200)
          let task = service.start(HTTPRequest(.get, server.url("/x"))) {
            replies.continuation.yield($0)
          }
          task.cancel()
          guard case .failure(let error) = await iterator.next() else {
            Issue.record("no error")
            return
          }
          #expect(error.code == .cancelled, "\(error)")
        }
      }
    }
  }
}
#endif
