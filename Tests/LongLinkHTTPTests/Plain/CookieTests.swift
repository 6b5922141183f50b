// SPDX-License-Identifier: Apache-2.0

#if HTTP
@testable import LongLinkHTTP
import Synchronization
import Testing

extension HTTPTests {
  /// Which cookies are kept, and who gets them back.
  @Suite struct CookieTests {
    /// What a URL gets after another one has set cookies.
    private func sent(
      _ cookies: [String], by setter: String = "http://a.example/x/y", to url: String? = nil,
      sharing domains: [String] = [], after seconds: Int64 = 0
    ) throws -> String? {
      let now = Mutex<Int64>(1_800_000_000)
      let jar = HTTPCookies(sharedDomains: domains) { now.withLock { $0 } }
      jar.take(cookies, from: try HTTPAddress(setter))
      now.withLock { $0 += seconds }
      return jar.field(for: try HTTPAddress(url ?? setter))
    }

    @Test func `a cookie goes back to its host, below its path`() throws {
      #expect(try sent(["a=1", "b=\"2\"; HttpOnly; SameSite=Lax"]) == "a=1; b=2")
      #expect(try sent(["a=1"], to: "http://a.example/x") == "a=1")
      #expect(try sent(["a=1"], to: "http://a.example:81/x/z/") == "a=1")
      #expect(try sent(["a=1"], to: "http://a.example/xy") == nil)
      #expect(try sent(["a=1"], to: "http://a.example/") == nil)
      #expect(try sent(["a=1; Path=/"], to: "http://a.example/") == "a=1")
      #expect(try sent(["a=1; path=z"], to: "http://a.example/x/") == "a=1")
      #expect(try sent(["a=1; Path=/"], to: "http://b.a.example/") == nil)
      #expect(try sent(["a=1; Path=/"], to: "http://example/") == nil)
      // The longest path first, then the oldest.
      #expect(
        try sent(["a=1; Path=/", "b=2; Path=/x", "c=3; Path=/", "a=4; Path=/"])
          == "b=2; a=4; c=3")
    }

    @Test func `a domain is shared where the application says so`() throws {
      let other = "http://b.example/"
      let cookie = ["a=1; Domain=.Example; Path=/"]
      #expect(try sent(cookie, to: other) == nil)
      #expect(try sent(cookie, to: other, sharing: ["example"]) == "a=1")
      #expect(try sent(cookie, to: "http://badexample/", sharing: ["example"]) == nil)
      #expect(try sent(["a=1; Path=/"], to: other, sharing: ["example"]) == nil)
      #expect(try sent(["a=1; Domain=b.example; Path=/"], sharing: ["example"]) == nil)
      #expect(try sent(["a=1; Domain=a.example"]) == "a=1")
      #expect(try sent(["a=1; Domain=1"], by: "http://127.0.0.1/", sharing: ["1"]) == nil)
    }

    @Test func `what TLS protects stays there`() throws {
      let secure = "https://a.example/"
      #expect(try sent(["a=1; Secure"], by: secure) == "a=1")
      #expect(try sent(["a=1; Secure"], by: secure, to: "http://a.example/") == nil)
      #expect(try sent(["a=1; Secure"]) == nil)
      #expect(try sent(["__Secure-a=1", "__Host-b=1; Secure; Path=/x"], by: secure) == nil)
      #expect(try sent(["__Host-b=1; Secure; Path=/"], by: secure) == "__Host-b=1")
      let jar = HTTPCookies()
      jar.take(["a=1; Secure"], from: try HTTPAddress(secure))
      jar.take(["a=2"], from: try HTTPAddress("http://a.example/"))
      #expect(jar.field(for: try HTTPAddress(secure)) == "a=1")
    }

    @Test func `cookies expire, and can be taken back`() throws {
      #expect(try sent(["a=1; Max-Age=10"], after: 9) == "a=1")
      #expect(try sent(["a=1; Max-Age=10"], after: 10) == nil)
      #expect(try sent(["a=1; Max-Age=99999999999999"], after: 34_560_000) == nil)
      #expect(try sent(["a=1; Expires=Fri, 15 Jan 2027 08:00:09 GMT"], after: 8) == "a=1")
      #expect(try sent(["a=1; Expires=Fri, 15 Jan 2027 08:00:09 GMT"], after: 9) == nil)
      #expect(try sent(["a=1", "a=; Max-Age=0"]) == nil)
      #expect(try sent(["a=1", "a=; Max-Age=-9"]) == nil)
    }

    @Test func `cookies are bounded, and break no head`() throws {
      let long = String(repeating: "a", count: 4096)
      #expect(try sent(["\(long)=1", "b=\(long)", "c=\(long.dropFirst())"])?.count == 4097)
      for cookie in ["", "=", "=1", "a=1\r\nX: y", "a=\u{1}", "a=1,b=2", "a=ü", "a b=1"] {
        #expect(try sent([cookie]) == nil, "\(cookie)")
      }
      let jar = HTTPCookies()
      let first = try HTTPAddress("http://0.a.example/")
      jar.take((0..<1000).map { "c\($0)=1" }, from: first)
      #expect(jar.count == 50)
      jar.take((0..<10).map { "d\($0)=1" }, from: first)
      #expect(jar.count == 50)
      #expect(jar.field(for: first)?.contains("c9=1") == false)
      #expect(jar.field(for: first)?.contains("c10=1") == true)
      for host in 1..<100 {
        let address = try HTTPAddress("http://\(host).a.example/")
        jar.take((0..<10).map { "c\($0)=1" }, from: address)
      }
      #expect(jar.count == 300)
      #expect(jar.field(for: first) == nil)
      jar.removeAll()
      #expect(jar.count == 0)
    }

    @Test func `a service with a jar sends cookies back, also across redirects`() async throws {
      try await RawServer.answering { request in
        switch request.target {
        case "/in":
          http("302 Found", ["Location: /home", "Set-Cookie: s=1; Path=/", "Set-Cookie: t=2"])
        default: http("200 OK", ["Set-Cookie: u=3; Path=/"], "x")
        }
      } body: { server in
        try await withService(HTTPConfiguration(cookies: HTTPCookies())) { service in
          try await service.succeed(HTTPRequest(.get, server.url("/in")))
          try await service.succeed(HTTPRequest(.get, server.url("/")))
          var own = HTTPRequest(.get, server.url("/"))
          own.fields["Cookie"] = "mine"
          try await service.succeed(own)
        }
        try await withService { service in
          try await service.succeed(HTTPRequest(.get, server.url("/in")))
        }
        #expect(
          server.received.map { $0["cookie"] ?? "" }
            == ["", "s=1; t=2", "s=1; t=2; u=3", "mine", "", ""])
      }
    }
  }
}
#endif
