// SPDX-License-Identifier: Apache-2.0

#if HTTP
import Foundation
@testable import LongLinkHTTP
import LongLinkReaders
import LongLinkUploads
import Synchronization
import Testing

extension HTTPTests {
  /// Bodies of requests and responses, in memory, in chunks and in files.
  @Suite struct BodyTests {
    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    private func withFolder(_ body: (String) async throws -> Void) async throws {
      let folder = FileManager.default.temporaryDirectory
        .appending(path: "longlink-http-\(UUID().uuidString)")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(at: folder) }
      try await body(folder.path)
    }

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
            request.body = .multipart(UploadBody([.file("f", at: path)]))
            let error = try await linkFailure { try await service.send(request) }
            #expect(error.code == .encodingFailed && error.detail.contains(path), "\(error)")
            #expect(error.delivery == .sent)
            request.body = .multipart(UploadBody([.file("f", at: path + "x")]))
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
            // What the sockets' buffers take, and no more.
            let ahead = sent.withLock { $0 } - received
            if ahead > 40_000_000 { Issue.record("\(ahead) bytes were not held back") }
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

    @Test func `a download is resumed with its tag, and never mixed`() async throws {
      let version = Mutex(1)
      let cutsAt = Mutex<Int?>(400)
      try await RawServer.run { connection in
        while let request = try await connection.request() {
          let tag = "\"v\(version.withLock { $0 })\""
          let whole = Array(
            repeating: UInt8(ascii: version.withLock { $0 } == 1 ? "a" : "b"), count: 1000)
          var start = 0
          if let range = request["range"], request["if-range"] == tag {
            start = Int(range.dropFirst(6).dropLast()) ?? 0
          }
          let head =
            start > 0
            ? "HTTP/1.1 206 Part\r\nContent-Range: bytes \(start)-999/1000" : "HTTP/1.1 200 OK"
          try await connection.send(
            "\(head)\r\nETag: \(tag)\r\nContent-Length: \(1000 - start)\r\n\r\n")
          if let cut = cutsAt.withLock({ $0.take() }) {
            try await connection.send(Array(whole[start..<cut]))
            return
          }
          try await connection.send(Array(whole[start...]))
        }
      } body: { server in
        try await withFolder { folder in
          try await withService { service in
            func download() async throws -> HTTPDownload {
              var request = HTTPRequest(.get, server.url("/f"))
              request.retry = .never
              return try await service.download(request, to: folder + "/f")
            }
            func names() throws -> [String] {
              try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
            }
            await #expect(throws: HTTPDownloadError.self) { try await download() }
            #expect(try names() == ["f.part", "f.part.etag"])
            let resumed = try await download()
            #expect(resumed == HTTPDownload(bytes: 1000, keptBytes: 400))
            #expect(try names() == ["f"])
            #expect(server.received.last?["range"] == "bytes=400-")
            #expect(server.received.last?["accept-encoding"] == "identity")
            // Another version in the middle: from the beginning.
            cutsAt.withLock { $0 = 300 }
            await #expect(throws: HTTPDownloadError.self) { try await download() }
            version.withLock { $0 = 2 }
            #expect(try await download() == HTTPDownload(bytes: 1000, keptBytes: 0))
            let data = try Data(contentsOf: URL(filePath: folder + "/f"))
            #expect(data == Data(repeating: UInt8(ascii: "b"), count: 1000))
            #expect(try names() == ["f"])
          }
        }
      }
    }

    @Test(arguments: [241, 242, 255])
    func `a download to a long name goes on`(length: Int) async throws {
      try await RawServer.run { connection in
        while let request = try await connection.request() {
          let head = "ETag: \"v\"\r\nContent-Length: "
          if request["range"] == "bytes=3-" {
            try await connection.send(
              "HTTP/1.1 206 Part\r\nContent-Range: bytes 3-5/6\r\n\(head)3\r\n\r\ndef")
          } else {
            return try await connection.send("HTTP/1.1 200 OK\r\n\(head)6\r\n\r\nabc")
          }
        }
      } body: { server in
        try await withFolder { folder in
          try await withService { service in
            let name = String(repeating: "n", count: length)
            let request = HTTPRequest(.get, server.url())
            await #expect(throws: HTTPDownloadError.self) {
              try await service.download(request, to: folder + "/" + name)
            }
            let names = try FileManager.default.contentsOfDirectory(atPath: folder)
            #expect(names.count == 2 && names.contains(name + ".part") == (length <= 241))
            let download = try await service.download(request, to: folder + "/" + name)
            #expect(download == HTTPDownload(bytes: 6, keptBytes: 3))
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == [name])
          }
        }
      }
    }

    @Test func `a download without room for its record is still whole`() async throws {
      try await RawServer.answering { _ in
        http("200 OK", ["ETag: \"v\""], "abc")
      } body: { server in
        try await withFolder { folder in
          try await withService { service in
            // A folder stands where the record would go.
            try FileManager.default.createDirectory(
              atPath: folder + "/f.part.etag", withIntermediateDirectories: false)
            let download = try await service.download(
              HTTPRequest(.get, server.url()), to: folder + "/f")
            #expect(download.bytes == 3)
          }
        }
      }
    }

    @Test func `a download that has ended leaves its file to the next one at once`() async throws {
      try await RawServer.answering { _ in
        http("404 Not Found")
      } body: { server in
        try await withFolder { folder in
          try await withService { service in
            for _ in 0..<200 {
              do {
                try await service.download(HTTPRequest(.get, server.url()), to: folder + "/f")
              } catch HTTPDownloadError.exchange(let error) {
                #expect(error.response?.rawValue == 404)
              }
            }
          }
        }
      }
    }

    @Test func `ranges that do not fit are not written`() async throws {
      #expect(ContentRange("bytes 5-9/10")?.first == 5)
      for text in ["bytes 5-9/9", "bytes 9-5/10", "bytes */10", "items 1-2/3", "bytes 1-2", nil] {
        #expect(ContentRange(text) == nil)
      }
      let range = Mutex("")
      try await RawServer.answering { request in
        request["range"] == nil
          ? http("200 OK", ["ETag: \"t\""], "fresh")
          : http(
            "206 Part", ["ETag: \"t\"", "Content-Range: bytes \(range.withLock { $0 })"], "esh")
      } body: { server in
        try await withFolder { folder in
          try await withService { service in
            // One begins elsewhere, one is of another whole length, and one has no length.
            for (text, kept) in [("1-4/5", 0), ("2-4/6", 0), ("2-4/*", 2), ("2-4/5", 2)] {
              range.withLock { $0 = text }
              try Data("fr".utf8).write(to: URL(filePath: folder + "/f.part"))
              let record = "longlink download 2\n\(server.url())\n\"t\"\n5\nend\n"
              try Data(record.utf8).write(to: URL(filePath: folder + "/f.part.etag"))
              let download = try await service.download(
                HTTPRequest(.get, server.url()), to: folder + "/f")
              #expect(download.keptBytes == kept, "\(text)")
              #expect(try Data(contentsOf: URL(filePath: folder + "/f")) == Data("fresh".utf8))
            }
          }
        }
      }
    }
  }
}
#endif
