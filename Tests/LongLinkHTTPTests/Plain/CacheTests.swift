// SPDX-License-Identifier: Apache-2.0

#if HTTP
import LongLinkCore
@testable import LongLinkHTTP
import Testing

extension HTTPTests {
  /// What servers allow to keep.
  @Suite struct HTTPCacheTests {
    private let start = LinkInstant(nanoseconds: 0)

    private func reply(_ fields: HTTPFields, body: Int = 10) -> HTTPReply {
      HTTPReply(
        status: 200, fields: fields, url: "u", body: [UInt8](repeating: 0, count: body),
        isFromCache: false)
    }

    private func isKept(
      _ fields: HTTPFields, asking: HTTPFields = [:], then: HTTPFields? = nil,
      after: Duration = .zero
    ) -> String {
      var cache = HTTPCache(limit: 10_000)
      cache.store(reply(fields), for: "u", asking, at: start)
      switch cache.find("u", then ?? asking, at: start.advanced(by: after)) {
      case .nothing: return "no"
      case .fresh: return "fresh"
      case .stale(_, let tag): return "stale \(tag)"
      }
    }

    @Test func `what is fresh, what is asked for again, and what is not kept`() {
      let fresh: HTTPFields = ["Cache-Control": "public, max-age=10"]
      #expect(isKept(fresh) == "fresh")
      #expect(isKept(fresh, after: .seconds(9)) == "fresh")
      #expect(isKept(fresh, after: .seconds(10)) == "no")
      #expect(isKept(["Cache-Control": "max-age=10", "Age": "4"], after: .seconds(7)) == "no")
      #expect(
        isKept(["Cache-Control": "max-age=10", "ETag": "t"], after: .seconds(11)) == "stale t")
      #expect(isKept(["Cache-Control": "no-cache, max-age=10", "ETag": "t"]) == "stale t")
      #expect(isKept(["ETag": "t"]) == "stale t")
      #expect(isKept([:]) == "no")
      #expect(isKept(["Cache-Control": "no-store, max-age=10", "ETag": "t"]) == "no")
      #expect(isKept(fresh, asking: ["Cache-Control": "no-store"]) == "no")
      #expect(isKept(["Cache-Control": "max-age=x"]) == "no")
      #expect(isKept(["Cache-Control": "max-age=99999999999999999999"]) == "no")
    }

    @Test func `a response that varies is for equal requests`() {
      let varying: HTTPFields = ["Cache-Control": "max-age=10", "Vary": "Accept-Language, X"]
      #expect(isKept(varying, asking: ["Accept-Language": "fr"]) == "fresh")
      #expect(isKept(varying, asking: ["Accept-Language": "fr"], then: [:]) == "no")
      #expect(isKept(varying, asking: [:], then: ["x": "1"]) == "no")
      #expect(isKept(["Cache-Control": "max-age=10", "Vary": "*"]) == "no")
      #expect(isKept(["Cache-Control": "max-age=10", "Vary": "Accept-Encoding"]) == "fresh")
    }

    @Test func `it is bounded, and forgets the least recently used`() {
      var cache = HTTPCache(limit: 3 * (HTTPCache.overhead + 200))
      let fields: HTTPFields = ["Cache-Control": "max-age=10"]
      for url in ["a", "b", "c"] { cache.store(reply(fields, body: 100), for: url, [:], at: start) }
      #expect(cache.count == 3)
      _ = cache.find("a", [:], at: start)
      cache.store(reply(fields, body: 100), for: "d", [:], at: start)
      guard case .fresh = cache.find("a", [:], at: start),
        case .nothing = cache.find("b", [:], at: start)
      else {
        Issue.record("the wrong one is gone")
        return
      }
      #expect(cache.bytes <= cache.limit)
      cache.store(reply(fields, body: 100_000), for: "a", [:], at: start)
      guard case .nothing = cache.find("a", [:], at: start) else {
        Issue.record("it is too large")
        return
      }
      for url in ["c", "d"] { cache.remove(url) }
      #expect(cache.bytes == 0 && cache.count == 0)
    }

    @Test func `a tag is asked for, and 304 brings what was kept`() async throws {
      try await RawServer.answering { request in
        request["if-none-match"] == "\"t\""
          ? "HTTP/1.1 304 Same\r\nETag: \"t\"\r\nCache-Control: max-age=1000\r\n\r\n"
          : http("200 OK", ["ETag: \"t\""], "body")
      } body: { server in
        try await withService(HTTPConfiguration(cacheBytes: 100_000)) { service in
          var request = HTTPRequest(.get, server.url())
          request.usesCache = true
          let replies = [
            try await service.send(request), try await service.send(request),
            try await service.send(request),
          ]
          #expect(replies.map(\.isFromCache) == [false, true, true])
          #expect(replies.allSatisfy { $0.body == Array("body".utf8) && $0.status == 200 })
          #expect(server.received.count == 2 && service.counters.cacheHits == 2)
          request.usesCache = false
          #expect(try await service.send(request).isFromCache == false)
          request.usesCache = true
          request.authentication = .basic(user: "u", password: "p")
          #expect(try await service.send(request).isFromCache == false)
        }
      }
    }
  }
}
#endif
