// SPDX-License-Identifier: Apache-2.0

#if HTTP
@testable import LongLinkHTTP
import LongLinkUploads
import Testing

extension HTTPTests {
  /// Redirects: the rules, and what leaves on the way.
  @Suite struct RedirectTests {
    private func step(
      _ status: Int, _ location: String?, _ method: HTTPMethod = .get,
      from: String = "https://a.test/x?q#f", canSendBodyAgain: Bool = true, limit: Int = 5
    ) throws -> Redirect {
      let address = try HTTPAddress(from)
      var redirects = Redirects(from: address, method, limit: limit)
      return try redirects.follow(
        status, to: location, from: address, method, canSendBodyAgain: canSendBodyAgain)
    }

    @Test(arguments: [
      (301, "GET", "GET"), (302, "GET", "GET"), (303, "GET", "GET"), (307, "GET", "GET"),
      (301, "POST", "GET"), (302, "POST", "GET"), (303, "POST", "GET"), (303, "PUT", "GET"),
      (307, "POST", "POST"), (308, "POST", "POST"), (301, "PUT", "PUT"), (302, "DELETE", "DELETE"),
      (301, "HEAD", "HEAD"), (303, "HEAD", "HEAD"), (308, "PATCH", "PATCH"),
    ])
    func `each status has its method`(status: Int, before: String, after: String) throws {
      let method = try #require(HTTPMethod(rawValue: before))
      let redirect = try step(status, "/y", method)
      #expect(redirect.method.rawValue == after)
      #expect(redirect.keepsBody == (before == after && status != 303))
    }

    @Test(arguments: [
      ("/y", "https://a.test/y#f"), ("y?z=1", "https://a.test/y?z=1#f"),
      ("//b.test/y", "https://b.test/y#f"), ("?z", "https://a.test/x?z#f"),
      ("https://b.test/y#g", "https://b.test/y#g"), ("https://u:p@b.test/", "https://b.test/#f"),
    ])
    func `a location is relative, and keeps the fragment`(location: String, whole: String) throws {
      #expect(try step(302, location).address.text == whole)
    }

    @Test func `what is not followed says why`() throws {
      func refusal(
        _ status: Int = 302, _ location: String?, _ method: HTTPMethod = .get,
        canSendBodyAgain: Bool = true, limit: Int = 5
      ) -> Redirect.Refusal? {
        do {
          _ = try step(
            status, location, method, canSendBodyAgain: canSendBodyAgain, limit: limit)
        } catch let refusal as Redirect.Refusal {
          return refusal
        } catch {}
        return nil
      }
      #expect(refusal(300, "/y") == .status)
      #expect(refusal(304, "/y") == .status)
      #expect(refusal(305, "/y") == .status)
      #expect(refusal(302, nil) == .noLocation)
      #expect(refusal(302, "http://a.test/y") == .insecure)
      #expect(refusal(302, "https://a.test/x?q") == .loop)
      #expect(refusal(302, "/y", limit: 0) == .tooMany(0))
      #expect(refusal(307, "/y", .post, canSendBodyAgain: false) == .bodyIsGone)
      #expect(refusal(302, "/y", .post, canSendBodyAgain: false) == nil)
      #expect(refusal(307, "/y", .head, canSendBodyAgain: false) == .bodyIsGone)
      #expect(refusal(303, "/y", .head, canSendBodyAgain: false) == nil)
      for bad in ["ftp://a.test/", "https:///y", "/a\u{1}b", "https://a.test:99999/", "mailto:a@b"]
      {
        if case .badLocation = refusal(302, bad) { continue }
        Issue.record("\(bad): \(String(describing: refusal(302, bad)))")
      }
    }

    @Test(arguments: [
      ("https://a.test/", "https://a.test:443/y", false),
      ("https://a.test/", "https://A.TEST/", false),
      ("https://a.test/", "https://a.test:444/", true), ("http://a.test/", "https://a.test/", true),
      ("https://a.test/", "https://b.a.test/", true),
    ])
    func `an origin is scheme, host and port`(from: String, to: String, crosses: Bool) throws {
      let address = try HTTPAddress(from)
      var redirects = Redirects(from: try HTTPAddress("https://z.test/"), .get, limit: 5)
      let redirect = try redirects.follow(302, to: to, from: address, .get, canSendBodyAgain: true)
      #expect(redirect.crossesOrigins == crosses)
    }

    @Test func `the body is read again, and the last response is the reply`() async throws {
      try await RawServer.answering { request in
        request.target == "/a" ? http("307 Go", ["Location: /b"]) : http("200 OK", [], "done")
      } body: { server in
        try await withService { service in
          var request = HTTPRequest(.post, server.url("/a"))
          request.body = .multipart([.field("x", "1")])
          let reply = try await service.send(request)
          #expect(String(decoding: reply.body, as: UTF8.self) == "done")
          #expect(reply.url == server.url("/b"))
          let received = server.received
          #expect(received.map(\.method) == ["POST", "POST"])
          #expect(received.map(\.target) == ["/a", "/b"])
          #expect(received[0].body == received[1].body && received[0].body.count > 100)
          #expect(received[0]["content-length"] == "\(received[0].body.count)")
          // The connection of the redirect is used again.
          #expect(server.connectionCount == 1)
        }
      }
    }

    @Test func `another origin gets no secrets, and gets none back`() async throws {
      try await RawServer.answering { _ in
        http("200 OK")
      } body: { other in
        let there = other.url("/there")
        try await RawServer.answering { _ in
          http("302 Go", ["Location: \(there)"])
        } body: { server in
          try await withService { service in
            var request = HTTPRequest(.get, server.url())
            request.authentication = .basic(user: "u", password: "p")
            request.fields = ["Cookie": "c", "X-Open": "o", "Proxy-Authorization": "q"]
            request.secretFields = ["X-Key": "k"]
            _ = try await service.send(request)
            let first = try #require(server.received.first)
            #expect(first["authorization"] == "Basic dTpw")
            #expect(first["x-key"] == "k" && first["cookie"] == "c" && first["x-open"] == "o")
            let second = try #require(other.received.first)
            #expect(second["authorization"] == nil && second["x-key"] == nil)
            #expect(second["cookie"] == nil && second["proxy-authorization"] == nil)
            #expect(second["x-open"] == "o")
          }
        }
      }
    }

    @Test func `six redirects, a circle and no location are errors with their status`() async throws
    {
      try await RawServer.answering { request in
        let steps = Int(request.target.dropFirst()) ?? -1
        if request.target == "/loop" { return http("301 Go", ["Location: /loop2"]) }
        if request.target == "/loop2" { return http("301 Go", ["Location: /loop"]) }
        if request.target == "/none" { return http("302 Go", [], "nowhere") }
        return steps > 0 ? http("302 Go", ["Location: /\(steps - 1)"]) : http("200 OK", [], "end")
      } body: { server in
        try await withService { service in
          try await service.succeed(HTTPRequest(.get, server.url("/5")))
          for (path, status) in [("/6", 302), ("/loop", 301), ("/none", 302)] {
            let error = try await linkFailure {
              try await service.send(HTTPRequest(.get, server.url(path)))
            }
            #expect(error.code == .rejected && error.delivery == .answered)
            #expect(error.response?.rawValue == UInt32(status))
          }
          #expect(service.counters.redirects == 11)
        }
      }
    }
  }
}
#endif
