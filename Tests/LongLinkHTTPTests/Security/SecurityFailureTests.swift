// SPDX-License-Identifier: Apache-2.0

#if HTTP
import LongLinkCertificates
import LongLinkCore
import LongLinkTestSupport
@testable import LongLinkHTTP
import Logging
import NIOCore
import NIOSSL
import Testing

extension HTTPTests {
  /// What is told of TLS that fails, of plain HTTP and of short links.
  @Suite(.timeLimit(.minutes(5))) struct SecurityFailureTests {
    /// The errors of one request of each kind to a port.
    private static func errors(
      at port: Int, tls: HTTPTLS = SecureServer.roots
    ) async throws -> [LongLinkError] {
      let base = "https://127.0.0.1:\(port)/longlink/v1"
      var errors: [LongLinkError] = []
      for offersHTTP2 in [true, false] {
        try await withService(HTTPConfiguration(offersHTTP2: offersHTTP2, tls: tls)) { service in
          errors.append(
            try await linkFailure { try await service.send(HTTPRequest(.get, base)) })
        }
      }
      var options = HTTPWayOptions()
      options.tls = tls
      var configuration = ClientConfiguration(ways: [try Way.http(url: base, options: options)])
      configuration.logger.logLevel = .critical
      let client = try LongLinkClient(configuration)
      errors.append(
        try await linkFailure {
          try await client.request(1, [1], options: RequestOptions(waitsForConnection: false))
        })
      await client.close(within: .zero)
      return errors
    }

    private static func expect(
      _ code: SecurityFailure.Code, _ text: String, in errors: [LongLinkError],
      isNotSent: Bool = true, sourceLocation: SourceLocation = #_sourceLocation
    ) {
      #expect(errors.count == 3, sourceLocation: sourceLocation)
      for error in errors {
        #expect(error.code == .securityFailed, "\(error)", sourceLocation: sourceLocation)
        #expect(error.securityFailure?.code == code, "\(error)", sourceLocation: sourceLocation)
        #expect(
          !isNotSent || error.delivery == .notSent, "\(error)", sourceLocation: sourceLocation)
        #expect(error.detail.contains(text), "\(error)", sourceLocation: sourceLocation)
        #expect(error.systemError == nil, "\(error)", sourceLocation: sourceLocation)
      }
    }

    /// In TLS 1.3 a server judges a certificate when the client is done, and may have begun to
    /// send. If the connection ends before it is used, the library below does not tell the cause:
    /// the next request does.
    private static func expectLate(
      _ code: SecurityFailure.Code, at port: Int, tls: HTTPTLS = SecureServer.roots
    ) async throws {
      while true {
        let errors = try await errors(at: port, tls: tls)
        for error in errors {
          #expect([.notSent, .sent].contains(error.delivery), "\(error)")
          #expect(error.code == (error.securityFailure == nil ? .connectionLost : .securityFailed))
        }
        guard errors.allSatisfy({ $0.securityFailure != nil }) else { continue }
        return expect(code, "certificate", in: errors, isNotSent: false)
      }
    }

    @Test func `a certificate for other names is told as that`() async throws {
      for names in [["DNS:other.example"], ["IP:127.0.0.2", "DNS:localhost"]] {
        try await SecureServer.run(SecureServer.certificate(names)) { port in
          Self.expect(.nameMismatch, "host of the URL", in: try await Self.errors(at: port))
        }
      }
    }

    @Test func `a chain that is not valid names what it can be`() async throws {
      let stranger = CertificateKit.make(
        CertificateRequest(
          name: "Stranger", isAuthority: true, validity: SecureServer.validity, keyKind: .p256))
      for pair in [
        SecureServer.certificate(valid: SecureServer.past),
        SecureServer.certificate(valid: SecureServer.future),
        SecureServer.certificate(issuer: stranger), SecureServer.certificate(issuer: nil),
        SecureServer.certificate(purpose: .client),
      ] {
        try await SecureServer.run(pair) { port in
          let errors = try await Self.errors(at: port)
          Self.expect(.invalidCertificate, "or it has expired", in: errors)
          Self.expect(.invalidCertificate, "additionalRoots", in: errors)
        }
      }
    }

    @Test func `a server that requires a certificate is told as that`() async throws {
      try await SecureServer.run(clients: SecureServer.authority) { port in
        try await Self.expectLate(.clientCertificateRequired, at: port)
        var tls = SecureServer.roots
        let own = SecureServer.certificate([], purpose: .client)
        tls.certificate = .pem(String(decoding: own.certificate, as: UTF8.self))
        tls.privateKey = .pem(String(decoding: own.key, as: UTF8.self))
        try await withService(HTTPConfiguration(tls: tls)) { service in
          try await service.succeed(HTTPRequest(.get, "https://127.0.0.1:\(port)/"))
        }
      }
    }

    @Test func `a certificate of this side that is not accepted is told as that`() async throws {
      let stranger = SecureServer.certificate([], purpose: .client, issuer: nil)
      var tls = SecureServer.roots
      tls.certificate = .pem(String(decoding: stranger.certificate, as: UTF8.self))
      tls.privateKey = .pem(String(decoding: stranger.key, as: UTF8.self))
      try await SecureServer.run(clients: SecureServer.authority) { port in
        try await Self.expectLate(.certificateRejected, at: port, tls: tls)
      }
      // In TLS 1.2 it is a part of the handshake.
      try await SecureServer.run(clients: SecureServer.authority, most: .tlsv12) { port in
        let errors = try await Self.errors(at: port, tls: tls)
        Self.expect(.certificateRejected, "not accept", in: errors)
      }
    }

    /// A server that answers the first bytes of each connection with these, and closes.
    private static func errors(answering bytes: [UInt8]) async throws -> [LongLinkError] {
      let listener = try await RawPeer.listen { peer in
        Task {
          await peer.heard.until { !$0.bytes.isEmpty || $0.isClosed }
          if !bytes.isEmpty { peer.send(bytes) }
          peer.close()
        }
      }
      let errors = try await errors(at: listener.localAddress?.port ?? 0)
      try await listener.close()
      return errors
    }

    @Test(
      arguments: [
        (10, .alert), (20, .damaged), (22, .damaged), (40, .noCommonCipher),
        (42, .certificateRejected), (43, .certificateRejected), (44, .certificateRejected),
        (45, .certificateRejected), (46, .certificateRejected), (47, .alert),
        (48, .certificateRejected), (49, .certificateRejected), (50, .damaged),
        (51, .certificateRejected), (70, .noCommonVersion), (71, .noCommonCipher), (80, .alert),
        (112, .alert), (116, .clientCertificateRequired), (120, .noApplicationProtocol),
      ] as [(UInt8, SecurityFailure.Code)])
    func `each alert of a server has its code`(
      _ alert: UInt8, _ code: SecurityFailure.Code
    ) async throws {
      let errors = try await Self.errors(answering: [21, 3, 3, 0, 2, 2, alert])
      Self.expect(code, "the server", in: errors)
    }

    @Test(
      arguments: [
        ("HTTP/1.1 400 Bad Request\r\n\r\n", .plainPeer, "does not speak TLS"),
        ("SSH-2.0-server\r\n", .plainPeer, "does not speak TLS"),
        ("", .cutOff, "in the handshake"),
        ("\u{16}\u{3}\u{3}\u{0}\u{4}\u{2}\u{0}\u{0}\u{0}", .damaged, "broke a rule"),
      ] as [(String, SecurityFailure.Code, String)])
    func `what is no TLS, and an end, are told as that`(
      _ answer: String, _ code: SecurityFailure.Code, _ text: String
    ) async throws {
      Self.expect(code, text, in: try await Self.errors(answering: Array(answer.utf8)))
    }

    @Test func `a body that ends without TLS's end is a lost connection, and says why`() {
      let purpose = ExchangePurpose(
        operation: "GET a", deadline: nil, idleTimeout: .seconds(1), connectTimeout: .seconds(1))
      let flight = HTTPFlight(1, deadline: .distantFuture, progress: nil)
      #expect(flight.willSend(onUsed: false) { _ in })
      let error = purpose.failure(of: NIOSSLError.uncleanShutdown, flight, past: .sent)
      #expect(error.code == .connectionLost && error.delivery == .sent, "\(error)")
      #expect(error.securityFailure?.code == .cutOff, "\(error)")
    }

    @Test func `what a server writes into the reason of a failure is escaped`() {
      let failure = SecurityCause.failure(named: "\u{1B}[31mX_ALERT_Y")
      #expect(failure.code == .alert && !failure.detail.contains("\u{1B}"), "\(failure)")
      #expect(!SecurityCause.failure(named: "\u{7}x").detail.contains("\u{7}"))
    }
  }
}
#endif
