// SPDX-License-Identifier: Apache-2.0

#if HTTP
@testable import LongLinkHTTP
import Synchronization
import Testing

extension HTTPTests {
  /// How often a token is renewed where that does not help.
  @Suite struct BearerTokenTests {
    /// A clock that stands still unless it is moved, and the tokens that were asked for.
    private final class Issuer: Sendable {
      struct NoToken: Error {}

      private let state = Mutex((now: ContinuousClock.now, renewals: 0, fails: false))

      var renewals: Int { state.withLock { $0.renewals } }

      var fails: Bool {
        get { state.withLock { $0.fails } }
        set { state.withLock { $0.fails = newValue } }
      }

      func advance(by time: Duration) { state.withLock { $0.now += time } }

      /// Tokens of which the first is `t0`.
      func tokens() -> HTTPBearerTokens {
        HTTPBearerTokens("t0", now: { self.state.withLock { $0.now } }) { _ in
          try self.state.withLock { state in
            state.renewals += 1
            if state.fails { throw NoToken() }
            return "t\(state.renewals)"
          }
        }
      }
    }

    private func request(_ server: RawServer, _ tokens: HTTPBearerTokens) -> HTTPRequest {
      var request = HTTPRequest(.get, server.url())
      request.authentication = .bearer(tokens)
      return request
    }

    @Test(arguments: [false, true])
    func `a renewal that does not help is followed by a pause`(_ fails: Bool) async throws {
      let issuer = Issuer()
      issuer.fails = fails
      try await RawServer.answering { _ in
        http("401 No")
      } body: { server in
        try await withService { service in
          let request = request(server, issuer.tokens())
          for (number, pause) in [1, 2, 4, 8, 16, 30, 30].enumerated() {
            let first = try await linkFailure { try await service.send(request) }
            #expect(first.response == 401 && issuer.renewals == number + 1)
            issuer.advance(by: .seconds(pause) - .milliseconds(1))
            for _ in 0..<3 {
              let error = try await linkFailure { try await service.send(request) }
              #expect(error.response == 401 && error.delivery == .answered)
              #expect(error.detail.contains("the next renewal begins in 1 s"), "\(error)")
              #expect(error.detail.contains("NoToken") == fails, "\(error)")
            }
            #expect(issuer.renewals == number + 1)
            issuer.advance(by: .milliseconds(1))
          }
        }
      }
    }

    @Test func `a server that accepts renewed tokens may reject each one soon`() async throws {
      let issuer = Issuer()
      let accepted = Mutex("")
      try await RawServer.answering { request in
        let isAccepted = request["authorization"] == "Bearer \(accepted.withLock { $0 })"
        return http(isAccepted ? "200 OK" : "401 No")
      } body: { server in
        try await withService { service in
          let request = request(server, issuer.tokens())
          for number in 1...5 {
            accepted.withLock { $0 = "t\(number)" }
            try await service.succeed(request)
            #expect(issuer.renewals == number)
          }
        }
      }
    }

    @Test func `a server that accepts all tokens ends no pause of another`() async throws {
      let issuer = Issuer()
      try await RawServer.answering { _ in
        http("200 OK")
      } body: { kind in
        try await RawServer.answering { _ in
          http("401 No")
        } body: { server in
          try await withService { service in
            let tokens = issuer.tokens()
            for _ in 0..<5 {
              try await service.succeed(request(kind, tokens))
              _ = try await linkFailure { try await service.send(request(server, tokens)) }
            }
            #expect(issuer.renewals == 1)
          }
        }
      }
    }
  }
}
#endif
