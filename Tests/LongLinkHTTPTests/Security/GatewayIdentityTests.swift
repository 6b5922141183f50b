// SPDX-License-Identifier: Apache-2.0

#if HTTP
import LongLink
import LongLinkDriver
import LongLinkHTTP
import LongLinkHTTPServer
import LongLinkServer
import LongLinkTestSupport
import LongLinkTransport
import Testing

extension HTTPTests {
  /// Who a client of a gateway is, and what it may do.
  @Suite(.timeLimit(.minutes(5))) struct GatewayIdentityTests {
    private static let ann = Array("key-ann".utf8)

    /// Knows `key-` and a name; the editor is ann.
    private static func byKey(_ request: AuthenticationRequest) throws -> Authentication {
      let text = String(decoding: request.credential ?? [], as: UTF8.self)
      if text == "key-eve" { throw Rejection(.forbidden, "not you") }
      guard text.hasPrefix("key-") else {
        throw Rejection(.unauthenticated, "unknown key")
      }
      let name = String(text.dropFirst(4))
      return Authentication(
        Principal(name, attributes: name == "ann" ? ["role": "editor"] : [:]))
    }

    private static func name(_ client: LongLinkClient) async throws -> String {
      String(decoding: try await client.request(HTTPStage.principal, []), as: UTF8.self)
    }

    @Test func `handlers see the principal, and each POST asks for the credential`() async throws {
      let asked = Watched(0)
      let shorts = Watched<[Bool]>([])
      try await HTTPStage.run { _ in
      } server: {
        $0.identity.authenticate = { request in
          shorts.change { $0.append(request.isShortLink && !request.isEncrypted) }
          return try Self.byKey(request)
        }
      } _: { stage in
        let client = try stage.client {
          $0.identity.credential = {
            asked.change { $0 += 1 }
            return Self.ann
          }
        }
        for _ in 0..<3 { #expect(try await Self.name(client) == "ann") }
        #expect(asked.value == 3 && shorts.value == [true, true, true])
        let bob = try stage.client { $0.identity.credential = { Array("key-bob".utf8) } }
        #expect(try await Self.name(bob) == "bob")
        #expect(await stage.server.counters().authentications.accepted == 4)
      }
    }

    @Test func `without a function of the server nobody has a name`() async throws {
      try await HTTPStage.run { stage in
        let client = try stage.client { $0.identity.credential = { Self.ann } }
        #expect(try await Self.name(client) == "nobody")
      }
    }

    @Test(arguments: [("wrong", ResponseCode.unauthenticated), ("key-eve", .forbidden)])
    func `a refusal is told once, refused, and the server is left alone`(
      _ key: String, _ code: ResponseCode
    ) async throws {
      let current = Watched(Array(key.utf8))
      try await HTTPStage.run { _ in
      } server: {
        $0.identity.authenticate = { try Self.byKey($0) }
      } _: { stage in
        let client = try stage.client { $0.identity.credential = { current.value } }
        for number in 0..<10 {
          let error = try await linkFailure {
            try await client.request(HTTPStage.echo, [UInt8](repeating: 1, count: 200_000))
          }
          #expect(error.code == .notAccepted && error.response == code, "\(error)")
          #expect(error.delivery == (number < 2 ? .refused : .notSent), "\(error)")
        }
        #expect(client.state == .notAccepted(code))
        #expect(await stage.server.counters().authentications.refused == 2)
        #expect(stage.gateway.counters.requests == 2 && stage.begun.value.isEmpty)
        try await client.connect()
        _ = try await linkFailure { try await client.request(HTTPStage.echo, [1]) }
        #expect(await stage.server.counters().authentications.refused == 3)
        current.change { $0 = Self.ann }
        #expect(try await Self.name(client) == "ann")
        #expect(client.state == .short(stage.url))
      }
    }

    @Test func `rules of routes hold`() async throws {
      try await HTTPStage.run { _ in
      } server: {
        $0.identity.authenticate = { try Self.byKey($0) }
      } _: { stage in
        let ann = try stage.client { $0.identity.credential = { Self.ann } }
        #expect(try await ann.request(HTTPStage.edit, [1]) == [1])
        let bob = try stage.client { $0.identity.credential = { Array("key-bob".utf8) } }
        let error = try await linkFailure { try await bob.request(HTTPStage.edit, [1]) }
        #expect(error.response == .forbidden && error.code == .rejected, "\(error)")
        #expect(error.delivery == .refused, "\(error)")
        #expect(try await Self.name(bob) == "bob")
      }
    }

    // MARK: Addresses behind a proxy

    private static func behind(
      _ address: String, _ stage: HTTPStage,
      _ configure: (inout ClientConfiguration) -> Void = { _ in }
    ) throws -> LongLinkClient {
      var options = HTTPWayOptions()
      options.headers = [("X-Forwarded-For", address)]
      return try stage.client(options: options, configure)
    }

    private static let atOnce = RequestOptions(waitsForConnection: false, retry: .never)

    @Test func `the limits of an address are those of the client behind the proxy`() async throws {
      try await HTTPStage.run {
        $0.trustedProxies = ["127.0.0.1"]
      } server: {
        $0.addresses.maxShortLinkRate = 1
        $0.addresses.denied = [AddressRange("198.51.100.0/24")!]
      } _: { stage in
        let fast = try Self.behind("192.0.2.1", stage)
        #expect(try await fast.request(HTTPStage.echo, [0]) == [0])
        // Four at once, and one per second: sooner or later one comes too soon.
        func rejections() async -> [String: UInt64] { await stage.server.counters().rejections }
        while await rejections()["addresses.maxShortLinkRate", default: 0] == 0 {
          await withTaskGroup { group in
            for _ in 0..<8 {
              group.addTask {
                _ = try? await fast.request(HTTPStage.echo, [1], options: Self.atOnce)
              }
            }
          }
        }
        // Another client of the same proxy has limits of its own.
        let other = try Self.behind("192.0.2.2", stage)
        #expect(try await other.request(HTTPStage.echo, [2]) == [2])
        let denied = try Self.behind("198.51.100.9", stage)
        _ = try await linkFailure {
          try await denied.request(HTTPStage.echo, [3], options: Self.atOnce)
        }
        #expect(await stage.server.counters().rejections["addresses.denied", default: 0] > 0)
      }
    }

    @Test(arguments: [true, false])
    func `a request is encrypted if a trusted proxy says that its clients are`(
      _ isTrusted: Bool
    ) async throws {
      let seen = Watched<[Bool]>([])
      try await HTTPStage.run {
        $0.trustedProxies = [isTrusted ? "127.0.0.1" : "10.0.0.1"]
        $0.isSecuredByProxy = true
      } server: {
        $0.identity.authenticate = { request in
          seen.change { $0.append(request.isEncrypted) }
          #expect(request.security == nil && request.isSecuredByProxy == isTrusted)
          return try Self.byKey(request)
        }
      } _: { stage in
        let client = try Self.behind("192.0.2.1", stage) { $0.identity.credential = { Self.ann } }
        #expect(try await Self.name(client) == "ann")
        #expect(seen.value == [isTrusted])
      }
    }

    @Test func `TLS of a proxy that is not named is no configuration`() throws {
      var configuration = HTTPGatewayConfiguration()
      configuration.isSecuredByProxy = true
      let error = #expect(throws: LongLinkError.self) { try configuration.validate() }
      #expect(error?.field == "isSecuredByProxy")
      configuration.trustedProxies = ["127.0.0.1"]
      try configuration.validate()
    }
  }
}
#endif
