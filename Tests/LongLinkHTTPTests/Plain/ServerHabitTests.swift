// SPDX-License-Identifier: Apache-2.0

#if HTTP
@testable import LongLinkHTTP
import LongLinkTestSupport
import Testing

extension HTTPTests {
  /// HTTP as servers speak it, where that is more than the plain case.
  @Suite(.serialized, .timeLimit(.minutes(5))) struct ServerHabitTests {
    /// 5,000 times `a`: 121 times larger than it is here.
    private static let same: [UInt8] = [
      0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xed, 0xc1, 0x31, 0x01, 0x00,
      0x00, 0x00, 0xc2, 0xa0, 0xac, 0xeb, 0x5f, 0xc2, 0x14, 0x7e, 0x40, 0x01, 0x00, 0x00, 0x00,
      0x00, 0x6f, 0x03, 0x76, 0x59, 0xf4, 0x4c, 0x88, 0x13, 0x00, 0x00,
    ]

    @Test(arguments: ["gzip", "deflate", "br"])
    func `no body has no encoding`(encoding: String) async throws {
      try await RawServer.run { connection in
        while let request = try await connection.request() {
          let field = "Content-Encoding: \(encoding)\r\n"
          switch (request.method, request.target) {
          case ("HEAD", _): try await connection.send("HTTP/1.1 200 OK\r\n\(field)\r\n")
          case (_, "/204"): try await connection.send("HTTP/1.1 204 No\r\n\(field)\r\n")
          case (_, "/chunked"):
            try await connection.send(
              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\(field)\r\n0\r\n\r\n")
          default:
            try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\(field)\r\n")
          }
        }
      } body: { server in
        try await withService { service in
          var requests = [
            HTTPRequest(.head, server.url()), HTTPRequest(.get, server.url()),
            HTTPRequest(.get, server.url("/204")),
          ]
          if encoding != "br" { requests.append(HTTPRequest(.get, server.url("/chunked"))) }
          for request in requests {
            let reply = try await service.send(request)
            #expect(reply.body == [] && reply.fields["Content-Encoding"] == encoding)
          }
        }
      }
    }

    @Test(.unless(Programs.nginxProblem))
    func `no body has no encoding over HTTP 2`() async throws {
      try await Programs.withNginx(
        listen: "ssl http2",
        """
        ssl_certificate \(Programs.peerFile("server.pem"));
        ssl_certificate_key \(Programs.peerFile("server.key"));
        add_header Content-Encoding gzip always;
        location / { return 200 ""; }
        location /204 { return 204; }
        """
      ) { port, _ in
        let tls = HTTPTLS(additionalRoots: [.file(Programs.peerFile("ca.pem"))])
        try await withService(HTTPConfiguration(tls: tls)) { service in
          for (method, path) in [(HTTPMethod.head, "/"), (.get, "/"), (.get, "/204")] {
            let reply = try await service.send(
              HTTPRequest(method, "https://localhost:\(port)\(path)"))
            #expect(reply.body == [] && reply.fields["Content-Encoding"] == "gzip")
          }
        }
      }
    }

    @Test(arguments: ["gzip", "x-gzip", "GZIP"], [1, 7, 1000])
    func `gzip of several members is one body`(encoding: String, pieceBytes: Int) async throws {
      try await RawServer.run { connection in
        while try await connection.request() != nil {
          let body = Self.same + GzipSamples.hello + GzipSamples.hello
          try await connection.send(
            "HTTP/1.1 200 OK\r\nContent-Encoding: \(encoding)\r\nTransfer-Encoding: chunked\r\n\r\n"
          )
          for start in stride(from: 0, to: body.count, by: pieceBytes) {
            let piece = body[start..<min(start + pieceBytes, body.count)]
            try await connection.send(
              Array("\(String(piece.count, radix: 16))\r\n".utf8) + piece + [13, 10])
          }
          try await connection.send("0\r\n\r\n")
        }
      } body: { server in
        try await withService { service in
          let reply = try await service.send(HTTPRequest(.get, server.url()))
          let text = String(repeating: "a", count: 5000) + String(repeating: "hello ", count: 40)
          #expect(String(decoding: reply.body, as: UTF8.self) == text)
        }
      }
    }

    @Test func `what is no further member, or ends within one, is an error`() async throws {
      let wholes = [
        "/garbage": GzipSamples.hello + Array("garbage".utf8),
        "/cut": GzipSamples.hello + GzipSamples.hello.dropLast(9),
      ]
      try await RawServer.run { connection in
        while let request = try await connection.request() {
          let body = wholes[request.target] ?? []
          try await connection.send(
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: \(body.count)\r\n\r\n")
          try await connection.send(body)
        }
      } body: { server in
        try await withService { service in
          for (path, code) in [
            ("/garbage", LongLinkError.Code.corrupted), ("/cut", .connectionLost),
          ] {
            let error = try await linkFailure {
              try await service.send(HTTPRequest(.get, server.url(path)))
            }
            #expect(error.code == code && error.detail.contains("compressed"), "\(error)")
          }
        }
      }
    }

    @Test func `a page may redirect to itself to set a cookie`() async throws {
      try await RawServer.answering { request in
        let isKnown = request["cookie"]?.contains("seen=1") == true
        switch request.target {
        case "/consent": return http("302 Go", ["Location: /two", "Set-Cookie: seen=1; Path=/"])
        case _ where isKnown: return http("200 OK", [], "in")
        case "/two": return http("302 Go", ["Location: /consent"])
        default: return http("302 Go", ["Location: \(request.target)", "Set-Cookie: seen=1"])
        }
      } body: { server in
        for path in ["/self", "/two"] {
          try await withService(HTTPConfiguration(cookies: HTTPCookies())) { service in
            try await service.succeed(HTTPRequest(.get, server.url(path)))
          }
          // Without a jar nothing would change.
          try await withService { service in
            let error = try await linkFailure {
              try await service.send(HTTPRequest(.get, server.url(path)))
            }
            #expect(error.response == 302 && error.detail.contains("circle"), "\(error)")
          }
        }
      }
    }

    /// Answers the first request of each connection. To the next one the first connection sends
    /// only this, and ends.
    private func withStaleConnection(
      _ answer: String = "", _ body: (HTTPService, RawServer) async throws -> Void
    ) async throws {
      try await RawServer.run { connection in
        guard try await connection.request() != nil else { return }
        try await connection.send(http("200 OK", [], "first"))
        guard try await connection.request() != nil else { return }
        try await connection.send(answer)
      } body: { server in
        try await withService { service in
          try await service.succeed(HTTPRequest(.get, server.url()))
          try await body(service, server)
        }
      }
    }

    @Test(arguments: [HTTPMethod.get, .options])
    func `a safe request is repeated once behind a stale connection`(
      method: HTTPMethod
    ) async throws {
      try await withStaleConnection { service, server in
        var request = HTTPRequest(method, server.url())
        request.retry = .ifSafe
        try await service.succeed(request)
        #expect(server.received.map(\.connection) == [1, 1, 2])
        #expect(service.counters.retries == 1)
      }
    }

    @Test func `nothing else is repeated behind a stale connection`() async throws {
      for (method, answer, retry) in [
        (HTTPMethod.post, "", RetryMode.ifSafe), (.put, "", .ifSafe), (.get, "", .never),
        (.get, "HTTP/1.1 2", .ifSafe), (.get, "HTTP/1.1 103 Early\r\n\r\n", .ifSafe),
      ] {
        try await withStaleConnection(answer) { service, server in
          var request = HTTPRequest(method, server.url())
          request.retry = retry
          let error = try await linkFailure { try await service.send(request) }
          #expect(error.code == .connectionLost && error.delivery == .sent, "\(error)")
          #expect(server.received.count == 2 && service.counters.retries == 0, "\(answer)")
        }
      }
    }

    @Test func `a new connection that ends is no stale one`() async throws {
      try await RawServer.run { connection in
        _ = try await connection.request()
      } body: { server in
        try await withService { service in
          let error = try await linkFailure {
            try await service.send(HTTPRequest(.get, server.url()))
          }
          #expect(error.code == .connectionLost && server.received.count == 1, "\(error)")
        }
      }
    }
  }
}
#endif
