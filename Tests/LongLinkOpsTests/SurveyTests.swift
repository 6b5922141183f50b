// SPDX-License-Identifier: Apache-2.0

#if Operations
import LongLink
import LongLinkServer
import LongLinkTestSupport
import LongLinkTransport
import NIOCore
import Testing

@testable import LongLinkOps

/// How the port asks the loops of a server.
@Suite struct SurveyTests {
  private func routes(_ server: LongLinkServer) {
    server.route(RPCMethod<[UInt8], [UInt8]>(60, "Block")) { body, _ in
      Blocking.hold(body)
      return body
    }
  }

  @Test func `each request waits a second for a loop that hangs, not for another request`()
    async throws
  {
    try await OpsStage.run(routes: routes) { stage in
      let client = try await stage.client()
      let blocking = Blocking.begin()
      let held = Task { try await client.request(60, blocking.body) }
      await blocking.untilHeld()
      // Real time is the subject. The second request comes while the loop owes the first one.
      func answered() async throws -> ContinuousClock.Instant {
        #expect(try await stage.request("/metrics").status == 200)
        return ContinuousClock.now
      }
      async let first = answered()
      try await Task.sleep(for: .milliseconds(100))
      async let second = answered()
      let ends = (try await first, try await second)
      #expect(ends.1 - ends.0 < .milliseconds(700))
      blocking.release()
      _ = try await held.value
    }
  }

  @Test func `a loop that lives is shown as it is beside one that hangs`() async throws {
    struct Overview: Decodable {
      struct Stale: Decodable {
        let loop: Int
        let figuresMsAgo: Int?
      }

      let live: Bool
      let loops: [Health.Loop]
      let stale: [Stale]?
    }
    try await OpsStage.run(server: { $0.loops = 2 }, routes: routes) { stage in
      let client = try await stage.client()
      let fresh: Overview = try await stage.json("/")
      #expect(fresh.live && fresh.stale == nil)
      let metrics = try await stage.request("/metrics")
      for loop in 0...1 {
        let age = metrics.metric("longlink_loop_figures_age_seconds{loop=\"\(loop)\"}")
        #expect(try #require(age) < 60)
      }
      let blocking = Blocking.begin()
      let held = Task { try await client.request(60, blocking.body) }
      await blocking.untilHeld()
      let health: Health = try await stage.json("/livez")
      let loops = try #require(health.loops)
      let hanging = try #require(loops.first { !$0.live })
      let living = try #require(loops.first { $0.live })
      #expect(hanging.ranMsAgo >= 1_000 && living.ranMsAgo < 900)
      let page: Overview = try await stage.json("/")
      #expect(!page.live && page.loops.map(\.live) == loops.map(\.live))
      #expect(page.stale?.map(\.loop) == [hanging.loop])
      #expect((page.stale?.first?.figuresMsAgo ?? 0) >= 1_000)
      let name = "longlink_loop_figures_age_seconds"
      let later = try await stage.request("/metrics")
      #expect(try #require(later.metric("\(name){loop=\"\(hanging.loop)\"}")) >= 1)
      #expect(later.metric("longlink_loop_live{loop=\"\(living.loop)\"}") == 1)
      for path in ["/", "/exchanges"] {
        let text = try await stage.request(path).body
        #expect(text.contains("Loop \(hanging.loop) did not answer: its figures are "))
      }
      blocking.release()
      _ = try await held.value
    }
  }

  @Test func `a loop has one ping and one survey at a time, and lives without a survey`()
    async throws
  {
    let server = try LongLinkServer(listen: .host("127.0.0.1", port: 0))
    let watch = ServerWatch(server, methods: [:], recordings: nil)
    try await server.start()
    let thread = PortThread()
    let counts = Watched([0, 0])
    let blocking = Blocking.begin()
    let loop = server.watchedLoops[0]
    loop.visit { _ in Blocking.hold(blocking.body) }
    await blocking.untilHeld()
    let bound = try await thread.loop.submit {
      let courier = LoopCourier(0, loop, on: thread)
      let wait = LoopWait(for: .survey, of: [courier]) { answers in
        #expect(answers[0].isLive && !answers[0].isWhole)
      }
      for _ in 0..<10 { courier.ping { counts.change { $0[0] += 1 } } }
      #expect(!wait.has(courier))
      return NIOLoopBound((courier, wait), eventLoop: thread.loop)
    }.get()
    blocking.release()
    await counts.until { $0[0] > 0 }
    try await thread.loop.submit {
      let (courier, wait) = bound.value
      wait.end()
      for _ in 0..<10 { courier.survey(watch) { counts.change { $0[1] += 1 } } }
    }.get()
    await counts.until { $0[1] > 0 }
    // What came before is answered before this.
    try await thread.loop.submit {
      bound.value.0.ping { counts.change { $0[0] += 1 } }
      #expect(bound.value.1.has(bound.value.0))
    }.get()
    await counts.until { $0[0] > 1 }
    #expect(counts.value == [2, 1])
    await server.shutDown(within: .zero)
  }

  @Test func `a survey visits 256 connections in a turn, and other work goes on between them`()
    async throws
  {
    try await OpsStage.run { stage in
      let port = Int(stage.server.endpoint.description.split(separator: ":").last ?? "") ?? 0
      var peers: [RawPeer] = []
      for _ in 0..<300 {
        let peer = try await RawPeer.connect(to: port)
        peer.send([0])
        peers.append(peer)
      }
      try await until { try await stage.metric("longlink_bytes_total{direction=\"in\"}") == 300 }
      let events = Watched<[String]>([])
      let loop = stage.server.watchedLoops[0]
      loop.visit { visit in
        visit.survey {
          events.change { $0.append("turn") }
          loop.loop.execute { events.change { $0.append("other") } }
        } then: { survey in
          #expect(survey.counters.bytesReceived == 300)
          #expect(survey.open == 0 && survey.draining == 0)
          events.change { $0.append("end") }
        }
      }
      await events.until { $0.contains("end") }
      #expect(events.value.prefix(4) == ["turn", "other", "turn", "end"])
      for peer in peers { peer.close() }
    }
  }
}
#endif
