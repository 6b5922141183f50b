// SPDX-License-Identifier: Apache-2.0

#if HTTP
import Foundation
@testable import LongLinkHTTP
import LongLinkHTTPServer
import Testing

extension HTTPTests {
  /// What errors say to people.
  @Suite struct FailureTextTests {
    /// The error of a request to a server that answers each connection with a handler.
    private func failure(
      scheme: String = "http", timeout: Duration? = nil,
      _ handler: @escaping @Sendable (RawConnection) async throws -> Void
    ) async throws -> LongLinkError {
      var result: LongLinkError?
      try await RawServer.run(handler) { server in
        try await withService { service in
          var request = HTTPRequest(.get, "\(scheme)://127.0.0.1:\(server.port)/")
          request.timeout = timeout
          let sent = request
          result = try await linkFailure { try await service.send(sent) }
        }
      }
      return try #require(result)
    }

    @Test func `a refused connect has the system's text and number`() async throws {
      try await withService { service in
        let error = try await linkFailure {
          try await service.send(HTTPRequest(.get, "http://127.0.0.1:1/"))
        }
        #expect(error.code == .connectFailed && error.systemError == ECONNREFUSED, "\(error)")
        #expect(error.detail == "Connection refused (ECONNREFUSED)", "\(error)")
        // A name may have several addresses: the first error of the system is told.
        let named = try await linkFailure {
          try await service.send(HTTPRequest(.get, "http://localhost:1/"))
        }
        #expect(named.code == .connectFailed && named.systemError != nil, "\(named)")
        #expect(named.detail.hasSuffix(")") && !named.detail.contains("errno"), "\(named)")
      }
    }

    @Test func `what is no HTTP is told as that`() async throws {
      let error = try await failure { connection in
        _ = try await connection.request()
        try await connection.send("garbage\r\n\r\n")
      }
      #expect(error.code == .protocolViolation, "\(error)")
      #expect(error.detail.hasPrefix("the answer is no HTTP: "), "\(error)")
    }

    @Test func `an end of the connection is told as that`() async throws {
      let none = try await failure { connection in _ = try await connection.request() }
      #expect(none.code == .connectionLost, "\(none)")
      #expect(none.detail == "the server closed the connection", "\(none)")
      let cut = try await failure { connection in
        _ = try await connection.request()
        try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
      }
      #expect(cut.code == .connectionLost, "\(cut)")
      #expect(cut.detail == "the connection ended within the answer", "\(cut)")
    }

    @Test func `a deadline is told as that`() async throws {
      let error = try await failure(timeout: .milliseconds(200)) { try await $0.untilEnd() }
      #expect(error.code == .deadlineExceeded, "\(error)")
      #expect(error.detail == "the deadline passed", "\(error)")
    }

    @Test func `a server without TLS is told as that`() async throws {
      let error = try await failure(scheme: "https") { connection in
        try await connection.send(http("400 Bad Request"))
        try await connection.untilEnd()
      }
      #expect(
        error.code == .securityFailed && error.securityFailure?.code == .plainPeer, "\(error)")
      let text = "the server does not speak TLS; use http:// or another port"
      #expect(error.detail == text, "\(error)")
    }

    @Test(arguments: [
      (
        "Error: 268435703 error:100000f7:SSL routines:OPENSSL_internal:WRONG_VERSION_NUMBER at "
          + "/a b/c:d.cc:231", "WRONG_VERSION_NUMBER"
      ),
      ("Error:  EOF during handshake", "EOF during handshake"),
      ("", ""),
    ])
    func `the reason of a failed handshake has no paths`(_ text: String, _ reason: String) {
      #expect(CauseText.reason(of: text) == reason)
    }

    @Test(arguments: [
      ("127.0.0.1:18080/json?token=1", "127.0.0.1:18080/json"), ("a.example/b#c", "a.example/b"),
      ("ftp://me:secret@a/b", "ftp://a/b"), ("\u{1B}[31m", "\\u{1B}[31m"),
    ])
    func `what is no URL is shown, without secrets`(_ url: String, _ shown: String) async throws {
      try await withService { service in
        let error = try await linkFailure { try await service.send(HTTPRequest(.get, url)) }
        #expect(error.code == .encodingFailed && error.delivery == .notSent, "\(error)")
        #expect(error.detail.hasPrefix("the URL \"\(shown)\": "), "\(error)")
        #expect(error.detail.contains("http:// or https://"), "\(error)")
      }
      let error = #expect(throws: LongLinkError.self) { _ = try Way.http(url: url) }
      #expect(error?.code == .invalidConfiguration && error?.field == "url")
      #expect(error?.detail.contains("\"\(shown)\"") == true, "\(String(describing: error))")
      #expect(error?.detail.contains("http:// or https://") == true)
    }

    @Test func `a gateway's port that is in use has the system's text and number`() async throws {
      try await RawServer.run { connection in
        try await connection.untilEnd()
      } body: { taken in
        let server = try LongLinkServer(listen: .host("127.0.0.1", port: 0))
        var configuration = HTTPGatewayConfiguration()
        configuration.port = taken.port
        let gateway = try LongLinkHTTPGateway(for: server, configuration)
        let error = try await linkFailure { try await gateway.start() }
        #expect(error.code == .connectFailed && error.systemError == EADDRINUSE, "\(error)")
        #expect(error.detail == "Address already in use (EADDRINUSE)", "\(error)")
        await gateway.shutDown(within: .zero)
        await server.shutDown(within: .zero)
      }
    }
  }
}
#endif
