// SPDX-License-Identifier: Apache-2.0

#if HTTP
@testable import LongLinkHTTP
import LongLinkUploadMessages
import LongLinkUploads
import Synchronization
import Testing

extension HTTPTests {
  /// Basic, Bearer and Digest.
  @Suite struct AuthenticationTests {
    @Test func `challenges are read, also several in one field`() {
      let challenges = Challenge.read([
        #"Negotiate, Basic realm="a, \"b\"", charset=UTF-8, "#
          + #"Digest realm=c,nonce="n=",qop="auth,x""#,
        "Bearer", "===,,Broken=\"", "Digest a = b ,, c",
      ])
      #expect(
        challenges == [
          Challenge(scheme: "negotiate"),
          Challenge(scheme: "basic", parameters: ["realm": #"a, "b""#, "charset": "UTF-8"]),
          Challenge(
            scheme: "digest", parameters: ["realm": "c", "nonce": "n=", "qop": "auth,x"]),
          Challenge(scheme: "bearer"),
          Challenge(scheme: "digest", parameters: ["a": "b"]),
          Challenge(scheme: "c"),
        ])
      #expect(Challenge.read([String(repeating: "a b=c,", count: 1000)]).count <= 32)
    }

    @Test(arguments: [
      ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
      ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
    ])
    func `the answers are those of RFC 7616, section 3 9 1`(
      algorithm: String, response: String
    ) throws {
      let challenge = Challenge(
        scheme: "digest",
        parameters: [
          "realm": "http-auth@example.org", "qop": "auth, auth-int", "algorithm": algorithm,
          "nonce": "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
          "opaque": "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS",
        ])
      var session = try #require(DigestSession(challenge))
      let first = session.answer(
        .get, "/dir/index.html", user: "Mufasa", password: "Circle of Life",
        clientNonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ")
      let answer = try #require(first)
      #expect(answer.contains("response=\"\(response)\""))
      #expect(answer.contains("nc=00000001") && answer.contains("opaque=\"FQhe/"))
      let second = session.answer(.get, "/", user: "Mufasa", password: "", clientNonce: "c")
      #expect(second?.contains("nc=00000002") == true)
    }

    @Test func `a nonce whose count is used up is answered no more, and another one is`() throws {
      let address = try HTTPAddress("https://a.test/x")
      let credentials = HTTPCredentials(user: "me", password: "open")
      let challenges = Challenge.read(["Digest realm=r, nonce=n, qop=auth"])
      #expect(credentials.accept(challenges, from: address.origin, answered: nil))
      credentials.sessions.withLock { sessions in
        guard case .digest(var session) = sessions[address.origin] else { return }
        session.count = .max - 2
        sessions[address.origin] = .digest(session)
      }
      #expect(credentials.answer(.get, address)?.contains("nc=fffffffe") == true)
      #expect(!credentials.mayBeChallenged(by: address.origin))
      #expect(credentials.answer(.get, address)?.contains("nc=ffffffff") == true)
      // A body that can be sent only once goes behind an empty request then.
      #expect(credentials.mayBeChallenged(by: address.origin))
      #expect(credentials.answer(.get, address) == nil)
      #expect(credentials.accept(challenges, from: address.origin, answered: nil))
      #expect(credentials.answer(.get, address)?.contains("nc=00000001") == true)
    }

    @Test func `requests are not counted for a server without qop`() throws {
      let parameters = ["realm": "r", "nonce": "n"]
      var session = try #require(
        DigestSession(Challenge(scheme: "digest", parameters: parameters)))
      let answers = (0..<2).map { _ in
        session.answer(.get, "/", user: "me", password: "open", clientNonce: "c")
      }
      #expect(answers[0] != nil && answers[0] == answers[1] && session.count == 0)
    }

    @Test func `what is not supported is refused`() {
      func session(_ parameters: [String: String]) -> DigestSession? {
        let base = ["realm": "r", "nonce": "n"]
        return DigestSession(
          Challenge(scheme: "digest", parameters: base.merging(parameters) { $1 }))
      }
      #expect(session([:])?.algorithm == .md5)
      #expect(session(["algorithm": "sha-256"])?.algorithm == .sha256)
      #expect(session(["algorithm": "MD5-sess"]) == nil)
      #expect(session(["algorithm": "SHA-512-256"]) == nil)
      #expect(session(["qop": "auth-int"]) == nil)
      #expect(session(["qop": ""])?.hasQuality == false)
      #expect(session(["nonce": "a\r\nb"]) == nil)
      #expect(session(["realm": String(repeating: "r", count: 5000)]) == nil)
      #expect(MD5Digest.hash(of: Array("abc".utf8))?.first == 0x90)
    }

    @Test(arguments: [
      (#"Digest realm="r", nonce="n", qop="auth-int""#, "Digest with qop=auth-int, which is not"),
      (#"Digest realm="r", nonce="n", algorithm=MD5-sess"#, "with the algorithm MD5-sess, which"),
      ("Negotiate", "asks for negotiate, which these credentials do not answer"),
    ])
    func `a challenge that cannot be answered is named`(challenge: String, text: String)
      async throws
    {
      try await RawServer.answering { _ in
        http("401 No", ["WWW-Authenticate: \(challenge)"])
      } body: { server in
        try await withService { service in
          var request = HTTPRequest(.get, server.url())
          request.authentication = .challenged(HTTPCredentials(user: "me", password: "open"))
          let error = try await linkFailure { try await service.send(request) }
          #expect(error.response == 401 && error.detail.contains(text), "\(error)")
        }
      }
    }

    /// A server of Digest that checks the answers itself.
    private func digest(
      stale: Bool = false, algorithm: String = "SHA-256", password: String = "open"
    ) -> @Sendable (RawRequest) -> String {
      let nonces = Mutex(1)
      return { request in
        let nonce = nonces.withLock { $0 }
        func challenge(_ more: String = "") -> String {
          let text = "Digest realm=\"r\", qop=\"auth\", algorithm=\(algorithm), nonce=\"\(nonce)\""
          return http(
            "401 No", ["WWW-Authenticate: Basic realm=x", "WWW-Authenticate: \(text)\(more)"])
        }
        guard let field = request["authorization"],
          let answer = Challenge.read([field]).first, answer.scheme == "digest"
        else { return challenge() }
        if answer.parameters["nonce"] != "\(nonce)" {
          return http(
            "401 No",
            [
              "WWW-Authenticate: Digest realm=\"r\", qop=\"auth\", algorithm=\(algorithm), "
                + "nonce=\"\(nonce)\", stale=true"
            ])
        }
        var session = DigestSession(
          Challenge(
            scheme: "digest",
            parameters: [
              "realm": "r", "qop": "auth", "algorithm": algorithm, "nonce": "\(nonce)",
            ]))
        let number = UInt32(answer.parameters["nc"] ?? "", radix: 16) ?? 1
        session?.count = number - 1
        let expected = session?.answer(
          HTTPMethod(rawValue: request.method) ?? .get, request.target, user: "me",
          password: password, clientNonce: answer.parameters["cnonce"] ?? "")
        guard expected == field else { return challenge() }
        // From now on another nonce.
        if stale { nonces.withLock { $0 += 1 } }
        return http("200 OK", [], "in")
      }
    }

    @Test(arguments: ["SHA-256", "MD5"])
    func `Digest is answered once, and then known`(algorithm: String) async throws {
      try await RawServer.answering(digest(algorithm: algorithm)) { server in
        try await withService { service in
          var request = HTTPRequest(.get, server.url("/a?b=c"))
          request.authentication = .challenged(HTTPCredentials(user: "me", password: "open"))
          for _ in 0..<3 { try await service.succeed(request) }
          let fields = server.received.map { $0["authorization"] ?? "" }
          #expect(fields.count == 4 && fields[0] == "")
          for (index, field) in fields.dropFirst().enumerated() {
            #expect(field.contains("nc=0000000\(index + 1)") && field.contains("uri=\"/a?b=c\""))
          }
          #expect(service.counters.challenges == 1)
        }
      }
    }

    @Test func `a stale nonce is renewed, a wrong password ends`() async throws {
      try await RawServer.answering(digest(stale: true)) { server in
        try await withService { service in
          var request = HTTPRequest(.post, server.url())
          request.body = .bytes(Array("hello".utf8), contentType: "text/plain")
          request.authentication = .digest(user: "me", password: "open")
          for _ in 0..<3 { try await service.succeed(request) }
          #expect(service.counters.challenges == 3)
          request.authentication = .digest(user: "me", password: "wrong")
          let error = try await linkFailure { try await service.send(request) }
          #expect(error.code == .rejected && error.response == 401)
          #expect(server.received.count == 8)
        }
      }
    }

    @Test func `a body that can be read once is not sent in vain`() async throws {
      try await RawServer.answering(digest()) { server in
        try await withService { service in
          var body = HTTPBody.content(.bytes(Array("secret".utf8)), contentType: "text/plain")
          body.isReplayable = false
          var request = HTTPRequest(.post, server.url())
          request.body = body
          request.authentication = .digest(user: "me", password: "open")
          try await service.succeed(request)
          #expect(server.received.map(\.body.count) == [0, 6])
          try await service.succeed(request)
          #expect(server.received.map(\.body.count) == [0, 6, 6])
        }
      }
    }

    @Test func `without a challenge nothing is told`() async throws {
      try await RawServer.answering { _ in
        http("200 OK")
      } body: { server in
        try await withService { service in
          var body = HTTPBody.content(.bytes(Array("secret".utf8)), contentType: "text/plain")
          body.isReplayable = false
          var request = HTTPRequest(.post, server.url())
          request.body = body
          request.authentication = .challenged(HTTPCredentials(user: "me", password: "open"))
          try await service.succeed(request)
          #expect(server.received.allSatisfy { $0["authorization"] == nil })
          #expect(server.received.map(\.body.count) == [0, 6])
        }
      }
    }

    @Test func `Basic answers a challenge if it may`() async throws {
      try await RawServer.answering { request in
        request["authorization"] == "Basic bWU6b3Blbg=="
          ? http("200 OK") : http("401 No", ["WWW-Authenticate: Basic realm=r"], "who?")
      } body: { server in
        try await withService { service in
          var request = HTTPRequest(.get, server.url())
          request.authentication = .challenged(HTTPCredentials(user: "me", password: "open"))
          try await service.succeed(request)
          #expect(server.received.count == 2)
          for authentication in [
            HTTPAuthentication.digest(user: "me", password: "open"),
            .challenged(HTTPCredentials(user: "me", password: "wrong")),
          ] {
            request.authentication = authentication
            let error = try await linkFailure { try await service.send(request) }
            #expect(error.response == 401 && String(decoding: error.body, as: UTF8.self) == "who?")
          }
          #expect(server.received.count == 5)
        }
      }
    }

    @Test func `one renewal of a token serves all who wait`() async throws {
      try await RawServer.answering { request in
        request["authorization"] == "Bearer new" ? http("200 OK") : http("401 No")
      } body: { server in
        try await withService { service in
          let renewals = Mutex<[String?]>([])
          let tokens = HTTPBearerTokens("old") { rejected in
            // All others ask meanwhile.
            try await until { server.received.count == 8 }
            renewals.withLock { $0.append(rejected) }
            return "new"
          }
          var request = HTTPRequest(.get, server.url())
          request.authentication = .bearer(tokens)
          try await withThrowingTaskGroup(of: Int.self) { [request] group in
            for _ in 0..<8 { group.addTask { try await service.send(request).status } }
            for try await status in group { #expect(status == 200) }
          }
          #expect(renewals.withLock { $0 } == ["old"])
          #expect(tokens.current == "new" && server.received.count == 16)
        }
      }
    }

    @Test func `a token that is rejected again, or cannot be had, is a 401`() async throws {
      struct NoToken: Error {}
      try await RawServer.answering { _ in
        http("401 No", [], "never")
      } body: { server in
        try await withService { service in
          var request = HTTPRequest(.get, server.url())
          request.authentication = .bearer(HTTPBearerTokens { _ in "new" })
          let again = try await linkFailure { try await service.send(request) }
          #expect(again.response == 401 && server.received.count == 2)
          request.authentication = .bearer(HTTPBearerTokens { _ in throw NoToken() })
          let none = try await linkFailure { try await service.send(request) }
          #expect(none.response == 401 && none.delivery == .notSent && server.received.count == 2)
        }
      }
    }

    @Test func `who stops waiting for a token does not stop the others`() async throws {
      let begun = Mutex(0)
      let mayEnd = Mutex(false)
      let tokens = HTTPBearerTokens { _ in
        begun.withLock { $0 += 1 }
        try await until { mayEnd.withLock { $0 } }
        return "t"
      }
      let first = Task { try await tokens.token(insteadOf: nil, for: "https://a") }
      try await until { begun.withLock { $0 } == 1 }
      let second = Task { try await tokens.token(insteadOf: nil, for: "https://a") }
      first.cancel()
      await #expect(throws: CancellationError.self) { try await first.value }
      mayEnd.withLock { $0 = true }
      let token = try await second.value
      #expect(token == "t")
      #expect(begun.withLock { $0 } == 1)
    }
  }
}
#endif
