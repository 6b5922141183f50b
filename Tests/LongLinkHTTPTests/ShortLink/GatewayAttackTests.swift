// SPDX-License-Identifier: Apache-2.0

#if HTTP
import LongLink
import LongLinkDriver
import LongLinkHTTP
import LongLinkHTTPServer
import LongLinkServer
import Logging
import LongLinkTestSupport
import NIOCore
import Testing

extension HTTPTests {
  /// What clients that mean ill, or are broken, can do to a gateway.
  @Suite(.timeLimit(.minutes(5))) struct GatewayAttackTests {
    static let head =
      "POST /longlink/v1 HTTP/1.1\r\nHost: a\r\nContent-Type: application/vnd.longlink\r\n"

    @Test(arguments: [
      ("GET /longlink/v1 HTTP/1.1\r\nHost: a\r\n\r\n", "405", "allow: post"),
      ("POST /other HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "404", "/longlink/v1"),
      ("POST /longlink/v1 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "415", "content type"),
      ("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", "404", "connection: close"),
      ("DELETE /longlink/v1?x HTTP/1.0\r\n\r\n", "405", "post"),
      (head + "Content-Encoding: gzip\r\nContent-Length: 0\r\n\r\n", "415", "compressed"),
      (
        "GET /\(String(repeating: "a", count: 9_000)) HTTP/1.1\r\nHost: a\r\n\r\n", "414",
        "too long"
      ),
      (head + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "501", "chunked"),
      (head + "Transfer-Encoding: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "501", ""),
      ("nonsense\r\n\r\n", "400", ""),
      (head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", "400", ""),
      (head + "Content-Length: -1\r\n\r\n", "400", ""),
      (head + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", "400", ""),
      (head + "Content-Length: 3\r\nContent-Length: 4\r\n\r\n", "400", ""),
      (head + "X: \(String(repeating: "a", count: 20_000))\r\n\r\n", "400", ""),
      (head + String(repeating: "X: y\r\n", count: 200) + "\r\n", "400", ""),
    ])
    func `what is no request of the short link gets a status, and the connection ends`(
      _ request: String, _ status: String, _ text: String
    ) async throws {
      try await HTTPStage.run { stage in
        let peer = try await RawPeer.connect(to: stage.port)
        peer.send(request)
        let answer = await peer.hearsEnd()
        #expect(answer.prefix(12).hasSuffix(status), "\(answer)")
        #expect(answer.lowercased().contains(text))
        #expect(stage.gateway.counters.requests == 0 || status == "400")
      }
    }

    @Test func `a refusal comes behind the request, or where its rest is too large or slow`()
      async throws
    {
      try await HTTPStage.run({ $0.headTimeout = .seconds(20) }) { stage in
        let wrong = Self.head.replacing("/longlink/v1", with: "/other")
        let whole = try await RawPeer.connect(to: stage.port)
        whole.send(wrong + "Content-Length: 200000\r\n\r\n")
        let waiting = try await RawPeer.connect(to: stage.port)
        waiting.send(wrong + "Content-Length: 9\r\nExpect: 100-continue\r\n\r\n")
        // It waits for leave to send: the one before, whose head came first, has no answer yet.
        #expect(await waiting.hears("\r\n\r\n").hasPrefix("HTTP/1.1 404"))
        #expect(whole.heard.value.bytes.isEmpty)
        whole.send([UInt8](repeating: 1, count: 200_000))
        #expect(await whole.hearsEnd().hasPrefix("HTTP/1.1 404"))
        let large = try await RawPeer.connect(to: stage.port)
        large.send(wrong + "Content-Length: 1000000\r\n\r\n")
        large.send([UInt8](repeating: 1, count: 300_000))
        #expect(await large.hears("\r\n\r\n").hasPrefix("HTTP/1.1 404"))
        large.close()
      }
      try await HTTPStage.run({ $0.headTimeout = .milliseconds(250) }) { stage in
        var answer = ""
        var count = 0
        // The gateway has real time alone. On a busy machine a head may come too late for it.
        while answer.isEmpty {
          let slow = try await RawPeer.connect(to: stage.port)
          slow.send(
            Self.head.replacing("/longlink/v1", with: "/other") + "Content-Length: 9\r\n\r\nabc")
          answer = await slow.hearsEnd()
          count += 1
        }
        #expect(answer.hasPrefix("HTTP/1.1 404"))
        #expect(stage.gateway.counters.timeouts == count)
      }
    }

    @Test func `a head that does not end is closed in time`() async throws {
      try await HTTPStage.run({ $0.headTimeout = .milliseconds(50) }) { stage in
        let silent = try await RawPeer.connect(to: stage.port)
        let slow = try await RawPeer.connect(to: stage.port)
        slow.send("POST /longl")
        await silent.hearsEnd()
        await slow.hearsEnd()
        #expect(stage.gateway.counters.timeouts == 2)
      }
    }

    @Test func `a head without end is cut`() async throws {
      try await HTTPStage.run { stage in
        let peer = try await RawPeer.connect(to: stage.port)
        peer.send(Self.head)
        while !peer.heard.value.isClosed {
          try? await peer.channel.writeAndFlush(ByteBuffer(string: "X-More: yes\r\n"))
        }
        #expect(stage.gateway.counters.badRequests == 1)
      }
    }

    @Test func `a first line without end is cut`() async throws {
      try await HTTPStage.run({ $0.headTimeout = .seconds(20) }) { stage in
        let peer = try await RawPeer.connect(to: stage.port)
        peer.send("POST /")
        let piece = ByteBuffer(repeating: 97, count: 65_536)
        var sent = 0
        while !peer.heard.value.isClosed, sent < 1 << 30 {
          try? await peer.channel.writeAndFlush(piece)
          sent += 65_536
        }
        #expect(sent < 16 << 20)
      }
    }

    @Test func `a body that stops is given up in time`() async throws {
      try await HTTPStage.run({ $0.idleTimeout = .milliseconds(50) }) { stage in
        let peer = try await RawPeer.connect(to: stage.port)
        peer.send(Self.head + "Content-Length: 1000\r\n\r\nabc")
        await peer.hearsEnd()
        while stage.gateway.counters.openConnections > 0 { await Task.yield() }
        #expect(stage.gateway.counters.timeouts == 1)
      }
    }

    @Test func `a body of garbage is answered with a goaway, and the rest is not read`()
      async throws
    {
      try await HTTPStage.run { stage in
        let peer = try await RawPeer.connect(to: stage.port)
        peer.send(Self.head + "Transfer-Encoding: chunked\r\n\r\n")
        let chunk = "10000\r\n" + String(repeating: "x", count: 65_536) + "\r\n"
        var sent = 0
        while !peer.heard.value.isClosed, sent < 1 << 30 {
          try? await peer.channel.writeAndFlush(ByteBuffer(string: chunk))
          sent += 65_536
        }
        #expect(sent < 64 << 20)
        #expect(peer.heard.value.text.hasPrefix("HTTP/1.1 200"))
      }
    }

    @Test func `an answer that nobody reads is given up, and its handler is told`() async throws {
      try await HTTPStage.run({ $0.idleTimeout = .seconds(1) }) { stage in
        // The frames of a real client, which this one repeats without reading.
        let frames = try await Self.frames(of: HTTPStage.endless)
        let peer = try await RawPeer.connect(to: stage.port, reads: false)
        peer.send(Self.head + "Content-Length: \(frames.count)\r\n\r\n")
        peer.send(frames)
        await stage.cancelled.until { $0 == 1 }
        let counters = stage.gateway.counters
        #expect(counters.timeouts == 1)
        peer.close()
      }
    }

    /// What a client sends for a stream of the server's items, or for a request.
    static func frames(
      of type: MessageType, isStream: Bool = true
    ) async throws -> [UInt8] {
      let heard = Watched<[UInt8]>([])
      let listener = try await RawPeer.listen { peer in
        Task {
          await peer.hears("0\r\n\r\n")
          heard.change { $0 = peer.heard.value.bytes }
          peer.close()
        }
      }
      let way = try Way.http(
        url: "http://127.0.0.1:\(listener.localAddress?.port ?? 0)/longlink/v1")
      var configuration = ClientConfiguration(ways: [way])
      configuration.logger.logLevel = .critical
      let client = try LongLinkClient(configuration)
      if isStream {
        do { for try await _ in client.stream(type, [3]) {} } catch {}
      } else {
        _ = try? await client.request(type, [3])
      }
      await client.close(within: .zero)
      try await listener.close()
      return Self.unchunked(heard.value)
    }

    private static func unchunked(_ bytes: [UInt8]) -> [UInt8] {
      let text = bytes[...]
      guard let end = text.firstRange(of: Array("\r\n\r\n".utf8)) else { return [] }
      var rest = text[end.upperBound...]
      var body: [UInt8] = []
      while let line = rest.firstRange(of: Array("\r\n".utf8)) {
        let size = Int(String(decoding: rest[..<line.lowerBound], as: UTF8.self), radix: 16) ?? 0
        guard size > 0 else { break }
        body += rest[line.upperBound...].prefix(size)
        rest = rest[line.upperBound...].dropFirst(size + 2)
      }
      return body
    }

    @Test func `a client that hangs up in the middle ends its request`() async throws {
      try await HTTPStage.run { stage in
        let frames = try await Self.frames(of: HTTPStage.hang)
        let peer = try await RawPeer.connect(to: stage.port)
        peer.send(Self.head + "Content-Length: \(frames.count)\r\n\r\n")
        peer.send(frames)
        // A stream to a route without one: refused, and answered.
        await peer.hears("HTTP/1.1 200")
        peer.close()
        let other = try await RawPeer.connect(to: stage.port)
        other.send(Self.head + "Content-Length: 1000\r\n\r\n")
        other.send(Array(frames.prefix(20)))
        other.close()
        let client = try stage.client()
        #expect(try await client.request(HTTPStage.echo, [1]) == [1])
      }
    }

    @Test func `requests in one packet are answered one after the other`() async throws {
      try await HTTPStage.run { stage in
        let frames = try await Self.frames(of: HTTPStage.count)
        let request =
          Array((Self.head + "Content-Length: \(frames.count)\r\n\r\n").utf8) + frames
        let peer = try await RawPeer.connect(to: stage.port)
        peer.send(request + request + request)
        await peer.heard.until { heard in
          heard.isClosed || heard.text.components(of: "HTTP/1.1 200") == 3
        }
        #expect(stage.gateway.counters.requests == 3)
        peer.close()
      }
    }

    @Test func `what follows an offered upgrade is not kept`() async throws {
      try await HTTPStage.run({ $0.headTimeout = .seconds(50) }) { stage in
        let frames = try await Self.frames(of: HTTPStage.count)
        let peer = try await RawPeer.connect(to: stage.port)
        peer.send(
          Self.head + "Connection: Upgrade\r\nUpgrade: x\r\nContent-Length: \(frames.count)\r\n\r\n"
        )
        peer.send(frames)
        #expect(await peer.hearsEnd().hasPrefix("HTTP/1.1 200"))
      }
    }

    @Test func `what is no head is not kept`() async throws {
      try await HTTPStage.run({ $0.headTimeout = .seconds(50) }) { stage in
        let peer = try await RawPeer.connect(to: stage.port)
        var sent = 0
        while !peer.heard.value.isClosed, sent < 256 << 20 {
          try? await peer.channel.writeAndFlush(ByteBuffer(repeating: 13, count: 65_536))
          sent += 65_536
        }
        #expect(sent < 16 << 20)
      }
    }

    @Test func `a client that pipelines and reads nothing is given up`() async throws {
      try await HTTPStage.run({ $0.idleTimeout = .seconds(1) }) { stage in
        let frames = try await Self.frames(of: HTTPStage.medium, isStream: false)
        let request = Array((Self.head + "Content-Length: \(frames.count)\r\n\r\n").utf8) + frames
        let peer = try await RawPeer.connect(to: stage.port, reads: false)
        // More answers than the buffers of both systems take.
        peer.send(Array(repeatElement(request, count: 1_000).joined()))
        while stage.gateway.counters.timeouts == 0 { await Task.yield() }
        while stage.gateway.counters.openConnections > 0 { await Task.yield() }
        peer.close()
      }
    }

    @Test(arguments: ["HTTP/1.0\r\n", "HTTP/1.1\r\nConnection: close\r\n"])
    func `a slow reader gets the whole of the last answer`(version: String) async throws {
      try await HTTPStage.run({ $0.headTimeout = .seconds(2) }) { stage in
        let frames = try await Self.frames(of: HTTPStage.large, isStream: false)
        let peer = try await RawPeer.connect(to: stage.port, reads: false)
        let head = Self.head.replacing("HTTP/1.1\r\n", with: version)
        peer.send(head + "Content-Length: \(frames.count)\r\n\r\n")
        peer.send(frames)
        await stage.begun.until { $0["large"] == 1 }
        // Longer than the rest of a request may take, in real time: the gateway has no other clock.
        try await Task.sleep(for: .milliseconds(2_500))
        try await peer.channel.setOption(.autoRead, value: true).get()
        _ = await peer.hearsEnd()
        #expect(peer.heard.value.bytes.count > HTTPStage.largeBytes)
      }
    }

    @Test func `a target may be a whole URL`() async throws {
      try await HTTPStage.run { stage in
        for target in ["http://a/longlink/v1", "HTTPS://a:1/longlink/v1?x", "http://a/other"] {
          let peer = try await RawPeer.connect(to: stage.port)
          let head = Self.head.replacing("POST /longlink/v1", with: "POST \(target)")
          peer.send(head + "Content-Length: 0\r\nConnection: close\r\n\r\n")
          let answer = await peer.hearsEnd()
          #expect(answer.contains(" 404 ") == target.hasSuffix("other"), "\(target): \(answer)")
        }
      }
    }

    @Test func `a client may wait for 100 Continue, and may speak HTTP 1.0`() async throws {
      try await HTTPStage.run { stage in
        let frames = try await Self.frames(of: HTTPStage.count)
        let length = "Content-Length: \(frames.count)\r\n"
        let waiting = try await RawPeer.connect(to: stage.port)
        waiting.send(Self.head + length + "Expect: 100-continue\r\n\r\n")
        #expect(await waiting.hears("100 Continue").contains("HTTP/1.1 100"))
        waiting.send(frames)
        #expect(await waiting.hears("HTTP/1.1 200").contains("no-store"))
        waiting.close()
        let old = try await RawPeer.connect(to: stage.port)
        old.send(Self.head.replacing("HTTP/1.1", with: "HTTP/1.0") + length + "\r\n")
        old.send(frames)
        let answer = await old.hearsEnd()
        #expect(answer.contains(" 200 "))
        #expect(!answer.lowercased().contains("chunked"))
        // Even where it would rather keep the connection.
        let keeping = try await RawPeer.connect(to: stage.port)
        keeping.send(
          Self.head.replacing("HTTP/1.1", with: "HTTP/1.0") + length
            + "Connection: keep-alive\r\n\r\n")
        keeping.send(frames)
        #expect(await keeping.hearsEnd().lowercased().contains("connection: close"))
      }
    }

    @Test func `a server that has stopped is a status 503`() async throws {
      try await HTTPStage.run { stage in
        await stage.server.shutDown(within: .zero)
        let peer = try await RawPeer.connect(to: stage.port)
        peer.send(Self.head + "Content-Length: 0\r\n\r\n")
        #expect(await peer.hearsEnd().hasPrefix("HTTP/1.1 503"))
      }
    }
  }
}

extension String {
  /// How often a text occurs.
  fileprivate func components(of text: String) -> Int { ranges(of: text).count }
}
#endif
