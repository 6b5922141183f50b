// SPDX-License-Identifier: Apache-2.0

#if Operations
import LongLink
import LongLinkServer
import LongLinkTestSupport
import NIOCore
import Testing

/// What clients of the port cannot do to it.
@Suite struct LimitTests {
  @Test func `silent clients do not keep a scrape out`() async throws {
    try await OpsStage.run { stage in
      var silent: [RawPeer] = []
      for number in 0..<40 {
        let peer = try await RawPeer.connect(to: stage.port)
        // Half of them begin a request.
        if number.isMultiple(of: 2) { peer.send("GET /metrics HTTP/1.1\r\nHost: ") }
        silent.append(peer)
      }
      for _ in 0..<5 { #expect(try await stage.request("/metrics").status == 200) }
      // Those that were silent for longest have made room.
      for peer in silent.prefix(20) { await peer.hearsEnd() }
      for peer in silent { peer.close() }
    }
  }

  @Test func `a connection that waits for its answer is not closed for another one`() async throws {
    try await OpsStage.run(routes: { server in
      server.route(60) { request in
        Blocking.hold(request.body)
        return request.body
      }
    }) { stage in
      let client = try await stage.client()
      let blocking = Blocking.begin()
      let held = Task { try await client.request(60, blocking.body) }
      await blocking.untilHeld()
      // Each waits a second for the loop.
      var waiting: [RawPeer] = []
      for _ in 0..<16 {
        let peer = try await RawPeer.connect(to: stage.port)
        peer.send("GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        waiting.append(peer)
      }
      defer { blocking.release() }
      let refused = try await stage.request("/metrics")
      var answered = 0
      for peer in waiting {
        guard let reply = PortReply(await peer.hearsEnd()) else { continue }
        #expect(reply.status == 503 && reply.body.contains("\"live\":false"))
        answered += 1
      }
      // One makes room if its request was not whole yet.
      #expect(answered >= 15)
      // It was refused, unless there was room.
      #expect(refused.status == 503 || refused.status == 200)
      blocking.release()
      _ = try await held.value
    }
  }

  @Test func `a head is at most 8 KiB`() async throws {
    try await OpsStage.run { stage in
      let line = "X-Padding: \(String(repeating: "x", count: 1_000))\r\n"
      let fits = try await RawPeer.connect(to: stage.port)
      fits.send("GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n")
      fits.send(String(repeating: line, count: 7) + "\r\n")
      #expect(PortReply(await fits.hearsEnd())?.status == 200)
      for beginning in [
        "GET /livez HTTP/1.1\r\nHost: localhost\r\n" + String(repeating: line, count: 9),
        "GET /" + String(repeating: "x", count: 9_000),
        String(repeating: "\r\n", count: 5_000),
        "GET /livez HTTP/1.1\r\n" + String(repeating: "a:b\r\n", count: 2_000),
      ] {
        let peer = try await RawPeer.connect(to: stage.port)
        peer.send(beginning)
        let text = await peer.hearsEnd()
        #expect(!text.contains("HTTP/1.1 200"))
      }
      #expect(try await stage.request("/livez").status == 200)
    }
  }

  @Test func `a head comes within five seconds, however its bytes drip`() async throws {
    try await OpsStage.run { stage in
      let peers = [
        try await RawPeer.connect(to: stage.port), try await RawPeer.connect(to: stage.port),
        try await RawPeer.connect(to: stage.port),
      ]
      let clock = ContinuousClock()
      let start = clock.now
      peers[1].send("GET /livez HTTP/1.1\r\n")
      // One has had an answer.
      peers[2].send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
      let dripping = Task {
        while !peers[1].heard.value.isClosed {
          peers[1].send("a")
          try await Task.sleep(for: .milliseconds(200))
        }
      }
      for peer in peers { await peer.hearsEnd() }
      let time = clock.now - start
      #expect(time > .seconds(4) && time < .seconds(60))
      #expect(peers[2].heard.value.text.contains("HTTP/1.1 200"))
      try await dripping.value
    }
  }

  @Test func `a body is at most 1 KiB`() async throws {
    try await OpsStage.run { stage in
      let small = String(repeating: "x", count: 1_024)
      #expect(try await stage.send("POST", "/connections/9/drain", body: small).status == 404)
      #expect(
        try await stage.send("POST", "/connections/9/drain", body: small + "x").status == 413)
      #expect(try await stage.send("GET", "/livez", body: small + "x").status == 413)
      // In chunks, whose number is not known before.
      let peer = try await RawPeer.connect(to: stage.port)
      peer.send(
        "POST /connections/9/drain HTTP/1.1\r\nHost: localhost\r\n"
          + "Transfer-Encoding: chunked\r\n\r\n")
      for _ in 0..<20 { peer.send("40\r\n\(String(repeating: "x", count: 64))\r\n") }
      #expect(PortReply(await peer.hearsEnd())?.status == 413)
    }
  }

  @Test func `an answer of which nothing is taken is cut`() async throws {
    try await OpsStage.run { stage in
      let peer = try await RawPeer.connect(to: stage.port, reads: false)
      let get = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
      peer.send(String(repeating: get, count: 100))
      // It ends although nothing is read.
      try await peer.channel.closeFuture.get()
      #expect(try await stage.request("/livez").status == 200)
    }
  }

  @Test func `what is no HTTP ends the connection`() async throws {
    try await OpsStage.run { stage in
      for text in ["\u{16}\u{3}\u{1}\r\n\r\n", "LLNK", "GET\r\n\r\n", "get / http/9.9\r\n\r\n"] {
        let peer = try await RawPeer.connect(to: stage.port)
        peer.send(text)
        let heard = await peer.hearsEnd()
        #expect(!heard.contains("200"))
      }
      #expect(try await stage.request("/livez").status == 200)
    }
  }
}
#endif
