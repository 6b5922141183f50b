// SPDX-License-Identifier: Apache-2.0

#if Operations
import LongLink
import LongLinkCore
import LongLinkServer
import Testing

@testable import LongLinkOps

/// What the port keeps of single requests, and how it counts times.
@Suite struct ExchangeTests {
  private struct Page: Decodable {
    struct Method: Decodable {
      let method: String
      let slowest: [Exchange]
      let failed: [Exchange]
    }

    struct Exchange: Decodable {
      let serial: UInt32
      let connection: UInt64
      let code: UInt32
      let milliseconds: Double
      let endedMsAgo: Int
    }

    let methods: [Method]
  }

  @Test func `the slowest and the last failed requests of each method are told`() async throws {
    try await OpsStage.run { stage in
      let client = try await stage.client()
      for number in 0..<30 {
        _ = try await client.request(OpsStage.echo, [UInt8(number)])
        _ = try? await client.request(OpsStage.fail, [4, UInt8(number)])
      }
      _ = try? await client.request(999, [])
      let page: Page = try await stage.json("/exchanges")
      #expect(page.methods.map(\.method) == ["Echo", "_OTHER", "test.Stage/Fail"])
      let (echo, fail) = (page.methods[0], page.methods[2])
      #expect(echo.slowest.count == 10 && echo.failed.isEmpty)
      #expect(echo.slowest.map(\.milliseconds) == echo.slowest.map(\.milliseconds).sorted(by: >))
      #expect(echo.slowest.allSatisfy { $0.code == 200 && $0.connection == 1 && $0.serial >= 50 })
      // The last of them first.
      #expect(fail.failed.map(\.code) == (20..<30).reversed().map { 1_024 + $0 })
      #expect(page.methods[1].failed.map(\.code) == [404])
    }
  }

  private func exchange(
    _ time: Int64, at ended: Int64, code: UInt32 = 200
  ) -> EndedExchange {
    EndedExchange(
      serial: 50, connection: 1, code: code, time: time,
      ended: LinkInstant(nanoseconds: ended * 1_000_000_000))
  }

  @Test func `a slow request is kept for an hour, unless slower ones come`() {
    func at(_ seconds: Int64) -> LinkInstant { LinkInstant(nanoseconds: seconds * 1_000_000_000) }
    var figures = MethodFigures("Echo")
    for number in 0..<20 { figures.add(exchange(Int64(number + 1) * 1_000, at: 1), error: nil) }
    #expect(figures.slowest.map(\.time).sorted() == (11...20).map { Int64($0) * 1_000 })
    for _ in 0..<5 { figures.add(exchange(10, at: 3_600), error: nil) }
    figures.forgetOld(at: at(3_601))
    #expect(figures.slowest.map(\.time).min() == 11_000)
    figures.add(exchange(50_000, at: 3_601), error: nil)
    // Without any further request.
    figures.forgetOld(at: at(3_602))
    #expect(figures.slowest.map(\.time) == [50_000])
    for number in 0..<15 { figures.add(exchange(10 + Int64(number), at: 3_602), error: nil) }
    #expect(figures.slowest.map(\.time).sorted() == (16...24).map { $0 } + [50_000])
  }

  @Test func `times are counted in buckets, and parts of them are estimated`() {
    var times = Histogram()
    #expect(times.milliseconds(of: 0.5) == nil)
    for _ in 0..<98 { times.add(100_000) }
    times.add(100_001)
    times.add(20_000_000_000)
    #expect(times.counts.first == 98 && times.counts[1] == 1 && times.counts.last == 1)
    #expect(times.count == 100 && times.sum == 20_009_900_001)
    #expect(times.milliseconds(of: 0.49) == 0.05)
    #expect(times.milliseconds(of: 0.98) == 0.1)
    #expect(times.milliseconds(of: 1) == 20_000)
    var one = Histogram()
    one.add(3_000_000_000)
    #expect(one.milliseconds(of: 0.99)! <= 3_000)
    var more = times
    more.add(3_000_000)
    #expect(more.since(times).count == 1)
    #expect(more.since(nil) == more)
    #expect(Histogram.bounds.count == Histogram.limits.count)
    for (bound, limit) in zip(Histogram.bounds, Histogram.limits) {
      #expect(Double(bound) == Double(limit) / 1e9)
    }
  }

  @Test func `the overview says what the server does`() async throws {
    struct Overview: Decodable {
      struct Connections: Decodable {
        let open: Int
        let most: Int
      }

      struct Method: Decodable {
        let method: String
        let requests: Int
        let errors: Int
      }

      let name: String
      let live: Bool
      let ready: Bool
      let connections: Connections
      let methods: [Method]
    }
    try await OpsStage.run(server: { $0.name = "shop <1>" }) { stage in
      let client = try await stage.client()
      for _ in 0..<3 { _ = try await client.request(OpsStage.echo, [1]) }
      _ = try? await client.request(OpsStage.fail, [4, 0])
      let page: Overview = try await stage.json("/")
      #expect(page.name == "shop <1>" && page.live && page.ready)
      #expect(page.connections.open == 1 && page.connections.most > 1)
      #expect(page.methods.map(\.method) == ["Echo", "test.Stage/Fail"])
      #expect(page.methods.map(\.requests) == [3, 1])
      #expect(page.methods.map(\.errors) == [0, 1])
      let text = try await stage.request("/").body
      #expect(text.hasPrefix("shop <1>: up ") && text.contains("live, ready"))
      #expect(text.contains("1 open") && text.contains("Echo"))
      let html = try await stage.request("/", accept: "text/html").body
      #expect(html.contains("<h1>shop &lt;1&gt;</h1>"))
      #expect(html.matches(of: /<svg/).count == 8)
    }
  }
}
#endif
