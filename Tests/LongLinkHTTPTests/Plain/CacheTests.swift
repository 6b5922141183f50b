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
      after: Duration = .zero, date: Int64 = 0
    ) -> String {
      var cache = HTTPCache(limit: 10_000)
      cache.store(reply(fields), for: "u", asking, at: start, date: date)
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

    @Test func `the age counts, by Age and by Date, and the request may want less of it`() {
      let fresh: HTTPFields = ["Cache-Control": "max-age=10"]
      for age in ["old, 0", "10, 0", "0, 10", "x"] {
        #expect(isKept(["Cache-Control": "max-age=10", "Age": age]) == "no", "\(age)")
      }
      #expect(isKept(["Cache-Control": "max-age=10", "Age": "0, 9"]) == "fresh")
      let dated: HTTPFields = [
        "Cache-Control": "max-age=10", "Date": "Thu, 01 Jan 1970 00:01:00 GMT",
      ]
      #expect(isKept(dated, date: 69) == "fresh" && isKept(dated, date: 70) == "no")
      #expect(isKept(dated, date: 0) == "fresh")
      for control in ["max-age=0", "min-fresh=11", "no-store", "no-cache", "max-age=5, max-age=0"] {
        #expect(isKept(fresh, then: ["Cache-Control": control]) == "no", "\(control)")
      }
      #expect(isKept(fresh, then: ["Cache-Control": "max-age=9, min-fresh=4"]) == "fresh")
      #expect(
        isKept(fresh, then: ["Cache-Control": "min-fresh=4"], after: .seconds(6)) == "no")
    }

    @Test func `a kept response has its age, and nothing of its connection`() {
      var cache = HTTPCache(limit: 10_000)
      let fields: HTTPFields = [
        "Cache-Control": "max-age=10", "Age": "3", "Connection": "close, X-Hop", "x-hop": "1",
        "X-End": "2",
      ]
      cache.store(reply(fields), for: "u", [:], at: start, date: 0)
      guard case .fresh(let kept) = cache.find("u", [:], at: start.advanced(by: .seconds(4))) else {
        Issue.record("not kept")
        return
      }
      #expect(kept.isFromCache && kept.fields.values(of: "Age") == ["7"])
      #expect(kept.fields["X-Hop"] == nil && kept.fields["Connection"] == nil)
      #expect(kept.fields["X-End"] == "2")
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
      for url in ["a", "b", "c"] {
        cache.store(reply(fields, body: 100), for: url, [:], at: start, date: 0)
      }
      #expect(cache.count == 3)
      _ = cache.find("a", [:], at: start)
      cache.store(reply(fields, body: 100), for: "d", [:], at: start, date: 0)
      guard case .fresh = cache.find("a", [:], at: start),
        case .nothing = cache.find("b", [:], at: start)
      else {
        Issue.record("the wrong one is gone")
        return
      }
      #expect(cache.bytes <= cache.limit)
      cache.store(reply(fields, body: 100_000), for: "a", [:], at: start, date: 0)
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
