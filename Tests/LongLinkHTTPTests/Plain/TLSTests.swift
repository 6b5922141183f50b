// SPDX-License-Identifier: Apache-2.0

#if HTTP
import Foundation
import LongLink
@testable import LongLinkHTTP
import LongLinkTestSupport
import LongLinkUploads
import Testing

extension HTTPTests {
  /// TLS, HTTP/2 and proxies, with an nginx and an Apache.
  @Suite(.serialized, .timeLimit(.minutes(3)), .unless(Programs.nginxProblem))
  struct TLSTests {
    private static let roots = HTTPTLS(additionalRoots: [.file(Programs.peerFile("ca.pem"))])

    /// Runs a body with an nginx that speaks TLS, and HTTP/2 to whoever offers it.
    private func withServer(
      _ directives: String = "", _ body: (Int, String) async throws -> Void
    ) async throws {
      let names = ["server.pem", "server.key", "ca.pem"].map { Programs.peerFile($0) }
      try await Programs.withNginx(
        listen: "ssl http2",
        """
        ssl_certificate \(names[0]); ssl_certificate_key \(names[1]);
        ssl_client_certificate \(names[2]); ssl_verify_client optional;
        location / { return 200 "$server_protocol $ssl_client_verify $request_method"; }
        \(directives)
        """, body: body)
    }

    private func expect(
      _ text: String, _ service: HTTPService, _ request: HTTPRequest,
      sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
      let body = String(decoding: try await service.send(request).body, as: UTF8.self)
      #expect(body.contains(text), sourceLocation: sourceLocation)
    }

    @Test func `given roots are trusted besides the system's, and HTTP 2 is spoken`() async throws {
      try await withServer { port, _ in
        for host in ["localhost", "127.0.0.1"] {
          let request = HTTPRequest(.get, "https://\(host):\(port)/")
          try await withService(HTTPConfiguration(tls: Self.roots)) { service in
            try await expect("HTTP/2.0 NONE GET", service, request)
          }
          try await withService(HTTPConfiguration(offersHTTP2: false, tls: Self.roots)) { service in
            try await expect("HTTP/1.1 NONE GET", service, request)
          }
          try await withService { service in
            let error = try await linkFailure { try await service.send(request) }
            #expect(error.code == .securityFailed && error.delivery == .notSent, "\(error)")
            #expect(error.detail.contains("CERTIFICATE"), "\(error)")
          }
        }
      }
    }

    @Test func `a certificate of another host is not trusted`() async throws {
      try await withServer { port, _ in
        try await withService(HTTPConfiguration(tls: Self.roots)) { service in
          let error = try await linkFailure {
            try await service.send(HTTPRequest(.get, "https://[::ffff:127.0.0.1]:\(port)/"))
          }
          #expect(error.code == .securityFailed && error.delivery == .notSent, "\(error)")
          #expect(error.securityFailure?.code == .nameMismatch, "\(error)")
        }
      }
    }

    @Test func `a client proves who it is`() async throws {
      try await withServer { port, _ in
        var tls = Self.roots
        tls.certificate = .file(Programs.peerFile("client.pem"))
        tls.privateKey = .pem(
          try String(contentsOfFile: Programs.peerFile("client.key"), encoding: .utf8))
        for offersHTTP2 in [true, false] {
          try await withService(HTTPConfiguration(offersHTTP2: offersHTTP2, tls: tls)) { service in
            let request = HTTPRequest(.get, "https://localhost:\(port)/")
            try await expect(" SUCCESS GET", service, request)
          }
        }
        tls.privateKey = nil
        _ = try await linkFailure { try HTTPService(HTTPConfiguration(tls: tls)) }
        tls.privateKey = .file("/nowhere")
        let error = try await linkFailure { try HTTPService(HTTPConfiguration(tls: tls)) }
        #expect(error.code == .invalidConfiguration && error.description.contains("tls.privateKey"))
      }
    }

    @Test func `HTTP 2 carries many exchanges and large bodies`() async throws {
      try await Programs.withPython { python in
        let form = "location /form { proxy_pass http://127.0.0.1:\(python); }"
        try await withServer("location /file {} \(form)") { port, folder in
          let bytes = [UInt8](
            (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
          try Data(bytes).write(to: URL(filePath: folder + "/file"))
          let url = "https://localhost:\(port)"
          try await withService(HTTPConfiguration(tls: Self.roots)) { service in
            try await withThrowingTaskGroup(of: Int.self) { group in
              for _ in 0..<20 {
                group.addTask {
                  try await service.send(HTTPRequest(.get, url + "/file")).body.count
                }
              }
              for try await count in group { #expect(count == bytes.count) }
            }
            #expect(try await service.send(HTTPRequest(.get, url + "/file")).body == bytes)
            var upload = HTTPRequest(.post, url + "/form")
            upload.body = .multipart([.bytes("a", fileName: "a", bytes)])
            try await expect("1000000", service, upload)
            #expect(service.counters.requests == 22)
          }
        }
      }
    }

    @Test func `silence, a cancel and a lost connection are told over HTTP 2, too`() async throws {
      try await RawServer.run { connection in
        guard let request = try await connection.request() else { return }
        if request.target == "/part" || request.target == "/lost" {
          try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
        }
        if request.target != "/lost" { try await connection.untilEnd() }
      } body: { silent in
        let proxy =
          "location / { proxy_pass http://127.0.0.1:\(silent.port); proxy_buffering off; }"
        try await Programs.withNginx(
          listen: "ssl http2",
          """
          ssl_certificate \(Programs.peerFile("server.pem"));
          ssl_certificate_key \(Programs.peerFile("server.key"));
          \(proxy)
          """
        ) { port, _ in
          let url = "https://localhost:\(port)"
          let quick = HTTPConfiguration(idleTimeout: .milliseconds(400), tls: Self.roots)
          try await withService(quick) { service in
            for path in ["/", "/part", "/"] {
              let error = try await linkFailure {
                try await service.send(HTTPRequest(.get, url + path))
              }
              #expect(error.code == .deadlineExceeded && error.delivery == .sent, "\(error)")
            }
          }
          try await withService(HTTPConfiguration(tls: Self.roots)) { service in
            let lost = try await linkFailure {
              try await service.send(HTTPRequest(.get, url + "/lost"))
            }
            #expect(lost.code == .connectionLost && lost.delivery == .sent, "\(lost)")
            let count = silent.received.count
            let task = Task { try await service.send(HTTPRequest(.get, url + "/cancel")) }
            try await until { silent.received.count > count }
            task.cancel()
            let error = try await linkFailure { try await task.value }
            #expect(error.code == .cancelled && error.delivery == .sent, "\(error)")
          }
        }
        try await until { silent.openCount == 0 }
      }
    }

    @Test(.unless(Programs.apacheProblem))
    func `a proxy that asks for a password tunnels TLS and plain requests`() async throws {
      try await withServer { secure, _ in
        try await Programs.withNginx(#"location / { return 200 "plain"; }"#) { plain, _ in
          try await Programs.withApache([
            "proxy", "proxy_connect", "authn_file", "authz_user", "auth_basic",
          ]) { folder in
            // The word "secret", in the form of crypt(3) that Apache takes on every system.
            try "me:$apr1$longlink$EOLDZZW430iML5RZv4MT41\n".write(
              toFile: folder + "/users", atomically: true, encoding: .utf8)
            return """
              ProxyRequests On
              AllowCONNECT \(secure) \(plain)
              <Proxy "*">
                AuthType Basic
                AuthName "proxy"
                AuthUserFile "\(folder)/users"
                Require valid-user
              </Proxy>
              """
          } body: { proxy, _ in
            try await tunnel(HTTPProxy(host: "127.0.0.1", port: proxy), secure, plain)
          }
        }
      }
    }

    private func tunnel(_ proxy: HTTPProxy, _ secure: Int, _ plain: Int) async throws {
      var named = proxy
      named.user = "me"
      named.password = "secret"
      try await withService(HTTPConfiguration(tls: Self.roots, proxy: named)) { service in
        let first = HTTPRequest(.get, "https://localhost:\(secure)/")
        try await expect("HTTP/2.0 NONE GET", service, first)
        let second = HTTPRequest(.get, "http://localhost:\(plain)/")
        try await expect("plain", service, second)
        // A port that the proxy does not allow.
        let error = try await linkFailure {
          try await service.send(HTTPRequest(.get, "http://localhost:1/"))
        }
        #expect(error.code == .connectFailed && error.delivery == .notSent, "\(error)")
      }
      named.password = "wrong"
      for proxy in [proxy, named] {
        try await withService(HTTPConfiguration(tls: Self.roots, proxy: proxy)) { service in
          let error = try await linkFailure {
            try await service.send(HTTPRequest(.get, "https://localhost:\(secure)/"))
          }
          #expect(error.code == .connectFailed && error.delivery == .notSent, "\(error)")
        }
      }
    }

    @Test func `the short link goes over TLS to whom it trusts`() async throws {
      try await HTTPStage.run { stage in
        let gateway = "location /longlink/v1 { proxy_pass http://127.0.0.1:\(stage.port); }"
        try await withServer(gateway) { port, _ in
          var options = HTTPWayOptions()
          options.tls = Self.roots
          let url = "https://localhost:\(port)/longlink/v1"
          let client = try stage.client(url: url, options: options)
          #expect(try await client.request(HTTPStage.echo, [1, 2]) == [1, 2])
          let wary = try stage.client(url: url) { $0.timeouts.request = .seconds(2) }
          let error = try await linkFailure { try await wary.request(HTTPStage.echo, [1]) }
          #expect(error.delivery == .notSent, "\(error)")
        }
      }
    }
  }
}
#endif
