// SPDX-License-Identifier: Apache-2.0

#if HTTP
@testable import LongLinkHTTP
import LongLinkUploads
import Testing

extension HTTPTests {
  /// A server that does what no server should: every exchange ends, with an error of a type, and at
  /// a bounded cost.
  @Suite(.serialized) struct HostileServerTests {
    private let patient = HTTPConfiguration(
      connectTimeout: .seconds(20), idleTimeout: .seconds(20), maxResponseBytes: 1 << 20)
    /// For servers whose silence is the matter.
    private let quick = HTTPConfiguration(
      connectTimeout: .seconds(20), idleTimeout: .milliseconds(300), maxResponseBytes: 1 << 20)
    /// The same, where something has to have happened before.
    private let slower = HTTPConfiguration(
      connectTimeout: .seconds(20), idleTimeout: .seconds(5), maxResponseBytes: 1 << 20)

    /// Sends one answer to the first request of each connection, and drops what follows.
    private func expect(
      _ code: LinkCode, _ detail: String = "", by configuration: HTTPConfiguration? = nil,
      _ answer: @escaping @Sendable (RawConnection) async throws -> Void,
      sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
      try await RawServer.run { connection in
        guard try await connection.request() != nil else { return }
        try await answer(connection)
      } body: { server in
        try await withService(configuration ?? patient) { service in
          let request = HTTPRequest(.get, server.url())
          let error = try await linkFailure(
            { try await service.send(request) }, sourceLocation: sourceLocation)
          #expect(error.code == code.code, "\(error)", sourceLocation: sourceLocation)
          #expect(error.detail.contains(detail), "\(error)", sourceLocation: sourceLocation)
          #expect(error.delivery != .notSent, "\(error)", sourceLocation: sourceLocation)
        }
        try await until { server.openCount == 0 }
      }
    }

    @Test func `a head of 65,000 bytes is read, one of 66,000 is not`() async throws {
      let line = "X: " + String(repeating: "a", count: 6495)
      try await RawServer.answering { request in
        http("200 OK", Array(repeating: line, count: request.target == "/9" ? 9 : 11))
      } body: { server in
        try await withService(patient) { service in
          try await service.succeed(HTTPRequest(.get, server.url("/9")))
          let error = try await linkFailure {
            try await service.send(HTTPRequest(.get, server.url("/11")))
          }
          #expect(error.code == .protocolViolation && error.detail.contains("65536"), "\(error)")
        }
      }
    }

    @Test func `a head of 101 fields is not read`() async throws {
      try await expect(.protocolViolation, "100 fields") { connection in
        try await connection.send(http("200 OK", (0..<100).map { "X-\($0): y" }))
      }
    }

    @Test func `an endless head ends`() async throws {
      try await expect(.protocolViolation) { connection in
        try await connection.send("HTTP/1.1 200 OK\r\n")
        let block = String(
          repeating: "X-Field: \(String(repeating: "v", count: 1000))\r\n", count: 60)
        for _ in 0..<2000 { try await connection.send(block) }
      }
      try await expect(.protocolViolation) { connection in
        try await connection.send("HTTP/1.1 200 OK\r\nX: ")
        let block = String(repeating: "v", count: 65_536)
        for _ in 0..<2000 { try await connection.send(block) }
      }
    }

    @Test func `endless interim responses end`() async throws {
      try await expect(.protocolViolation, "interim") { connection in
        for _ in 0..<10_000 { try await connection.send("HTTP/1.1 103 Early\r\nX: y\r\n\r\n") }
      }
    }

    @Test func `silence ends, in the head and in the body`() async throws {
      // A connection's first read may be under way before or after its first request.
      for _ in 0..<6 {
        try await expect(.deadlineExceeded, "silent", by: quick) { try await $0.untilEnd() }
      }
      try await expect(.deadlineExceeded, "silent", by: quick) { connection in
        try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
        try await connection.untilEnd()
      }
    }

    @Test(arguments: [
      ("Content-Length: 10\r\n\r\nabc", LinkCode.connectionLost),
      ("Content-Length: 10\r\nContent-Length: 3\r\n\r\nabc", .protocolViolation),
      ("Content-Length: -1\r\n\r\nabc", .protocolViolation),
      ("Content-Length: 99999999999999999999999\r\n\r\nabc", .protocolViolation),
      ("Content-Length: 3x\r\n\r\nabc", .protocolViolation),
      ("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", .connectionLost),
      ("Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n", .protocolViolation),
      ("Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n", .protocolViolation),
      ("Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFFF\r\nabc", .protocolViolation),
      ("Transfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n0\r\n\r\n", .protocolViolation),
      ("Bad Name: x\r\n\r\n", .protocolViolation),
      ("Content-Length: 2000000\r\n\r\n", .tooLarge),
      ("Content-Encoding: br\r\nContent-Length: 3\r\n\r\nabc", .protocolViolation),
      ("Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", .corrupted),
    ])
    func `wrong lengths, chunks and encodings are errors`(
      answer: String, code: LinkCode
    ) async throws {
      try await expect(code) { try await $0.send("HTTP/1.1 200 OK\r\n\(answer)") }
    }

    @Test(arguments: [
      "\u{16}\u{3}\u{1}\u{0}abc", "GET / HTTP/1.1\r\n\r\n", "HTTP/9.9 200 OK\r\n\r\n", "\r\n",
    ])
    func `what is no HTTP is an error`(answer: String) async throws {
      try await RawServer.run { connection in
        guard try await connection.request() != nil else { return }
        try await connection.send(answer)
      } body: { server in
        try await withService(patient) { service in
          let error = try await linkFailure {
            try await service.send(HTTPRequest(.get, server.url()))
          }
          #expect([.protocolViolation, .connectionLost].contains(error.code), "\(error)")
          #expect(error.delivery == .sent)
        }
      }
    }

    @Test func `an endless body ends at the bound`() async throws {
      for encoding in ["Transfer-Encoding: chunked", "Connection: close"] {
        try await expect(.tooLarge, "1048576") { connection in
          try await connection.send("HTTP/1.1 200 OK\r\n\(encoding)\r\n\r\n")
          let data = String(repeating: "v", count: 65_536)
          let block = encoding.contains("chunked") ? "10000\r\n\(data)\r\n" : data
          for _ in 0..<4000 { try await connection.send(block) }
        }
      }
    }

    @Test func `an error body of 100 MB is not received`() async throws {
      try await RawServer.run { connection in
        guard try await connection.request() != nil else { return }
        try await connection.send("HTTP/1.1 500 Bad\r\nContent-Length: 100000000\r\n\r\n")
        let block = Array(repeating: UInt8(ascii: "e"), count: 100_000)
        for _ in 0..<1000 { try await connection.send(block) }
      } body: { server in
        try await withService(patient) { service in
          let error = try await linkFailure {
            try await service.send(HTTPRequest(.get, server.url()))
          }
          #expect(error.code == .rejected && error.response == 500 && error.delivery == .answered)
          #expect(error.body.count == 65_536)
          #expect(error.detail.utf8.count < 300)
          try await until { server.openCount == 0 }
        }
      }
    }

    @Test func `an error body that drips, or lacks its end, is still the error`() async throws {
      for ending in [true, false] {
        try await RawServer.run { connection in
          guard try await connection.request() != nil else { return }
          try await connection.send("HTTP/1.1 404 No\r\nContent-Length: 1000\r\n\r\nno")
          if ending { return }
          for _ in 0..<1000 {
            try await connection.send("n")
            // Real time is the subject: a timer of the exchange bounds such a body, and the guard
            // must not be faster than it.
            try await Task.sleep(for: .milliseconds(20))
          }
        } body: { server in
          try await withService(slower) { service in
            let error = try await linkFailure {
              try await service.send(HTTPRequest(.get, server.url()))
            }
            #expect(error.response == 404 && error.body.starts(with: Array("no".utf8)))
          }
          try await until { server.openCount == 0 }
        }
      }
    }

    @Test func `a bomb of gzip ends at the ratio`() async throws {
      // 10 MiB of zeros, twice compressed by gzip's own program: see Resources.
      try await expect(.corrupted, "maxInflation") { connection in
        let bomb = GzipSamples.bomb
        try await connection.send(
          "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: \(bomb.count)\r\n\r\n")
        try await connection.send(bomb)
        try await connection.untilEnd()
      }
    }

    @Test func `an upload that nobody reads ends`() async throws {
      try await RawServer.run { connection in
        _ = try await connection.request(withBody: false)
        try await Task.sleep(for: .seconds(60))
      } body: { server in
        try await withService(slower) { service in
          var request = HTTPRequest(.post, server.url())
          request.body = .content(
            .bytes([UInt8](repeating: 1, count: 32 << 20)), contentType: "a/b")
          let error = try await linkFailure { try await service.send(request) }
          #expect(error.code == .deadlineExceeded && error.delivery == .sent, "\(error)")
        }
      }
    }

    @Test func `a 413 in the middle of an upload is the answer`() async throws {
      try await RawServer.run { connection in
        _ = try await connection.request(withBody: false)
        try await connection.send(http("413 Large", ["Connection: close"], "too much"))
        try await connection.untilEnd()
      } body: { server in
        try await withService(patient) { service in
          var request = HTTPRequest(.post, server.url())
          request.body = .content(
            .bytes([UInt8](repeating: 1, count: 32 << 20)), contentType: "a/b")
          let error = try await linkFailure { try await service.send(request) }
          #expect(error.code == .rejected && error.response == 413, "\(error)")
          // The end of the connection may overtake the text.
          #expect(["too much", ""].contains(String(decoding: error.body, as: UTF8.self)))
        }
      }
    }

    @Test func `a response cut at any place ends`() async throws {
      let whole = Array(
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
          + String(repeating: "32\r\n\(String(repeating: "x", count: 50))\r\n", count: 80)
          + "0\r\n\r\n").utf8)
      try await RawServer.run { connection in
        guard let request = try await connection.request() else { return }
        try await connection.send(Array(whole.prefix(Int(request.target.dropFirst()) ?? 0)))
      } body: { server in
        try await withService(patient) { service in
          for place in stride(from: 0, to: whole.count, by: max(1, whole.count / 100)) {
            var request = HTTPRequest(.get, server.url("/\(place)"))
            request.retry = .never
            let error = try await linkFailure { try await service.send(request) }
            #expect(error.code == .connectionLost && error.delivery == .sent, "\(place): \(error)")
          }
          #expect(try await service.send(HTTPRequest(.get, server.url("/9999"))).body.count == 4000)
        }
      }
    }
  }
}

/// Codes as arguments of tests.
enum LinkCode: Sendable {
  case connectionLost, corrupted, deadlineExceeded, protocolViolation, tooLarge

  var code: LongLinkError.Code {
    switch self {
    case .connectionLost: .connectionLost
    case .corrupted: .corrupted
    case .deadlineExceeded: .deadlineExceeded
    case .protocolViolation: .protocolViolation
    case .tooLarge: .tooLarge
    }
  }
}
#endif
