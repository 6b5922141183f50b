// SPDX-License-Identifier: Apache-2.0

#if Operations
import Foundation
import LongLink
import LongLinkServer
import LongLinkTestSupport
import NIOCore
import Testing

@testable import LongLinkOps

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

  @Test func `who has no token cannot keep a scrape out, even with requests that wait`()
    async throws
  {
    try await OpsStage.run {
      $0.token = "secret"
    } routes: { server in
      server.route(60) { request in
        Blocking.hold(request.body)
        return request.body
      }
    } _: { stage in
      let client = try await stage.client()
      let blocking = Blocking.begin()
      defer { blocking.release() }
      let held = Task { try await client.request(60, blocking.body) }
      await blocking.untilHeld()
      // Each waits a second for the loop.
      let health = "GET /livez HTTP/1.1\r\nHost: localhost\r\n"
      var strangers: [RawPeer] = []
      for _ in 0..<16 {
        let peer = try await RawPeer.connect(to: stage.port)
        peer.send(health + "\r\n")
        strangers.append(peer)
      }
      var scrapes: [RawPeer] = []
      for _ in 0..<16 {
        let peer = try await RawPeer.connect(to: stage.port)
        peer.send(health + "Authorization: Bearer secret\r\nConnection: close\r\n\r\n")
        scrapes.append(peer)
      }
      for peer in scrapes {
        #expect(PortReply(await peer.hearsEnd())?.body.contains("\"loops\"") == true)
      }
      // They have made room, unless they had their answers already.
      for peer in strangers { await peer.hearsEnd() }
      blocking.release()
      _ = try await held.value
    }
  }

  @Test func `a connection ends behind an answer to somebody who is not trusted`() async throws {
    try await OpsStage.run {
      $0.token = "secret"
    } _: { stage in
      func answers(_ head: String) async throws -> [PortReply] {
        let peer = try await RawPeer.connect(to: stage.port)
        peer.send(String(repeating: head + "\r\n", count: 2))
        return await peer.hearsEnd().components(separatedBy: "HTTP/1.1 ").dropFirst()
          .compactMap { PortReply("HTTP/1.1 " + $0) }
      }
      let host = "Host: localhost\r\n"
      for (head, status) in [
        ("GET /metrics HTTP/1.1\r\n" + host, 401), ("GET /livez HTTP/1.1\r\n" + host, 200),
        ("GET /readyz HTTP/1.1\r\n" + host, 200), ("GET / HTTP/1.1\r\nHost: evil\r\n", 421),
        ("GET / HTTP/1.1\r\nAuthorization: Bearer no\r\n" + host, 401),
      ] {
        let replies = try await answers(head)
        #expect(replies.map(\.status) == [status])
        #expect(replies.first?.headers["connection"] == "close")
      }
      for _ in 0..<9 { _ = try await stage.request("/", ["Authorization: Bearer no"]) }
      let throttled = try await answers("GET / HTTP/1.1\r\nAuthorization: Bearer secret\r\n" + host)
      #expect(throttled.map(\.status) == [429])
    }
  }

  @Test func `a whole answer has thirty seconds, and something is taken in each five`() {
    let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
    var time = AnswerTime(from: start)
    // A part of it fits into the system's buffers.
    #expect(time.wrote(unwritten: 100, at: start) == .seconds(5))
    #expect(time.next(unwritten: 100, at: start + .seconds(5)) == nil)
    time = AnswerTime(from: start)
    _ = time.wrote(unwritten: 1_000, at: start)
    for step in 1...5 {
      let now = start + .seconds(Int64(step) * 5)
      #expect(time.next(unwritten: 1_000 - step, at: now) == .seconds(5))
    }
    #expect(time.next(unwritten: 900, at: start + .seconds(28)) == .seconds(2))
    #expect(time.next(unwritten: 800, at: start + .seconds(30)) == nil)
    #expect(time.wrote(unwritten: 800, at: start + .seconds(31)) == .zero)
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

  @Test func `the bytes of a head are counted without those of a body`() async throws {
    try await OpsStage.run { stage in
      let line = "POST /connections/9/drain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
      let body = String(repeating: "x", count: 1_000)
      func answer(_ length: Int) async throws -> String {
        let peer = try await RawPeer.connect(to: stage.port)
        let padding = String(repeating: "a", count: length - line.utf8.count - 26)
        // A request before it is not counted either.
        peer.send(line + "\r\n" + body)
        await peer.hears("no connection 9")
        peer.send(line + "Connection: close\r\nX: " + padding + "\r\n\r\n" + body)
        return await peer.hearsEnd()
      }
      #expect(try await answer(8_192).components(separatedBy: "HTTP/1.1 404").count == 3)
      #expect(try await answer(8_193).components(separatedBy: "HTTP/1.1 404").count == 2)
      // What is around the bytes of a body has a bound too.
      let peer = try await RawPeer.connect(to: stage.port)
      peer.send(
        "POST /connections/9/drain HTTP/1.1\r\nHost: localhost\r\n"
          + "Transfer-Encoding: chunked\r\n\r\n1;" + String(repeating: "e", count: 20_000))
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

  /// In a process of its own, whose descriptors this takes.
  @Test func `without descriptors the port answers one more client, and then rests`() async {
    await #expect(processExitsWith: .success) {
      try await OpsStage.run { stage in
        let request = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
        // What is made once takes its descriptors now: sockets' threads, and timers.
        #expect(try await stage.request("/livez").status == 200)
        try await Task.sleep(for: .milliseconds(1))
        var peers: [RawPeer] = []
        var taken = LimitTests.takeDescriptors()
        for _ in 0..<2 {
          // One for the client. The port has none for its side.
          close(taken.removeLast())
          peers.append(try await RawPeer.connect(to: stage.port))
          peers.last?.send(request)
          await peers[0].hears("\"live\":true")
        }
        #expect(unsafe open("/dev/null", O_RDONLY) < 0)
        // Real time is the subject: the port looks ten times in a second, and does not spin.
        let before = clock()
        try await Task.sleep(for: .seconds(1))
        #expect(clock() - before < 500_000)
        #expect(peers[1].heard.value.bytes.isEmpty)
        // The next one comes in when the first one has left.
        peers[0].close()
        await peers[1].hears("\"live\":true")
        #expect(PortReply(peers[1].heard.value.text)?.status == 200)
        peers[1].close()
        for descriptor in taken { close(descriptor) }
      }
    }
  }

  /// Takes all descriptors that the process may have, of which it allows itself few more.
  private static func takeDescriptors() -> [Int32] {
    #if os(Linux)
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
    let resource = RLIMIT_NOFILE
    #endif
    var limit = rlimit()
    _ = unsafe getrlimit(resource, &limit)
    limit.rlim_cur = min(limit.rlim_cur, 1_024)
    _ = unsafe setrlimit(resource, &limit)
    var taken: [Int32] = []
    while true {
      let descriptor = unsafe open("/dev/null", O_RDONLY)
      guard descriptor >= 0 else { return taken }
      taken.append(descriptor)
    }
  }
}
#endif
