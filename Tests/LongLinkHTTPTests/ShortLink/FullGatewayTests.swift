// SPDX-License-Identifier: Apache-2.0

#if HTTP
import LongLink
import LongLinkDriver
import LongLinkHTTPServer
import LongLinkServer
import LongLinkTestSupport
import LongLinkTransport
import Logging
import Testing

extension HTTPTests {
  /// Whom a gateway lets in when all of its places are taken.
  @Suite(.timeLimit(.minutes(5))) struct FullGatewayTests {
    private static func fill(
      _ stage: HTTPStage, _ count: Int, saying text: String = ""
    ) async throws -> [RawPeer] {
      var peers: [RawPeer] = []
      for _ in 0..<count {
        let peer = try await RawPeer.connect(to: stage.port)
        if !text.isEmpty { peer.send(text) }
        peers.append(peer)
      }
      while stage.gateway.counters.connectionsAccepted < count { await Task.yield() }
      return peers
    }

    private static func request(_ frames: [UInt8]) -> [UInt8] {
      Array((GatewayAttackTests.head + "Content-Length: \(frames.count)\r\n\r\n").utf8) + frames
    }

    /// What makes a connection nobody's: nothing, a part of a head, and a request that does not
    /// say who its client is.
    @Test(arguments: ["", "POST /longl", GatewayAttackTests.head + "Content-Length: 9999\r\n\r\n"])
    func `idle connections do not keep an honest client out`(_ text: String) async throws {
      try await HTTPStage.run({ $0.maxConnections = 20 }) { stage in
        let idle = try await Self.fill(stage, 20, saying: text)
        let client = try stage.client()
        #expect(try await client.request(HTTPStage.echo, [1]) == [1])
        await idle[0].hearsEnd()
        #expect(!idle[1].heard.value.isClosed)
        let counters = stage.gateway.counters
        #expect(counters.connectionsEvicted == 1 && counters.connectionsTurnedAway == 0)
        #expect(counters.timeouts == 0)
        for peer in idle { peer.close() }
      }
    }

    @Test func `a connection that was used outlasts a flood of unused ones`() async throws {
      try await HTTPStage.run({ $0.maxConnections = 5 }) { stage in
        let request = Self.request(try await GatewayAttackTests.frames(of: HTTPStage.count))
        let honest = try await RawPeer.connect(to: stage.port)
        honest.send(request)
        await honest.hears("done")
        let flood = try await Self.fill(stage, 40)
        while stage.gateway.counters.connectionsEvicted < 36 { await Task.yield() }
        honest.send(request)
        await honest.heard.until { $0.isClosed || $0.text.ranges(of: "done").count == 2 }
        #expect(!honest.heard.value.isClosed)
        #expect(stage.gateway.counters.requests == 2)
        for peer in flood { peer.close() }
        honest.close()
      }
    }

    @Test func `a connection that has waited long for its next request makes room`() async throws {
      try await HTTPStage.run({ $0.maxConnections = 2 }) { stage in
        let request = Self.request(try await GatewayAttackTests.frames(of: HTTPStage.count))
        var used: [RawPeer] = []
        for _ in 0..<2 {
          let peer = try await RawPeer.connect(to: stage.port)
          peer.send(request)
          await peer.hears("done")
          used.append(peer)
        }
        let client = try stage.client()
        // Right after an answer its connection may still be taken for a busy one.
        var answer: [UInt8]?
        while answer == nil { answer = try? await client.request(HTTPStage.echo, [1]) }
        await used[0].hearsEnd()
        #expect(!used[1].heard.value.isClosed)
        #expect(stage.gateway.counters.connectionsEvicted == 1)
        used[1].close()
      }
    }

    @Test func `a running request keeps its connection, and a further one is turned away`()
      async throws
    {
      let lines = LogLines()
      try await HTTPStage.run({
        $0.maxConnections = 2
        $0.logger = lines.logger(from: .warning)
      }) { stage in
        let client = try stage.client()
        let running = (0..<2).map { _ in
          Task { try await client.request(HTTPStage.hang, []) }
        }
        await stage.begun.until { $0["hang"] == 2 }
        for _ in 0..<20 { await (try RawPeer.connect(to: stage.port)).hearsEnd() }
        let counters = stage.gateway.counters
        #expect(counters.connectionsTurnedAway == 20 && counters.connectionsEvicted == 0)
        #expect(counters.openConnections == 2 && stage.cancelled.value == 0)
        for task in running { task.cancel() }
        await stage.cancelled.until { $0 == 2 }
      }
      // One address has three lines of a kind at once.
      let turnedAway = lines.all.map(\.message).filter { $0.hasPrefix("Turned away") }
      #expect(turnedAway.count == 3 && Set(turnedAway).count == 1)
    }

    @Test func `connections that make room are logged at a limited rate`() async throws {
      let lines = LogLines()
      try await HTTPStage.run({
        $0.maxConnections = 2
        $0.logger = lines.logger(from: .warning)
      }) { stage in
        let flood = try await Self.fill(stage, 30)
        while stage.gateway.counters.connectionsEvicted < 28 { await Task.yield() }
        while stage.gateway.counters.openConnections > 2 { await Task.yield() }
        for peer in flood { peer.close() }
      }
      let closed = lines.all.map(\.message).filter { $0.hasPrefix("Closed the oldest") }
      #expect(closed.count == 3 && Set(closed).count == 1)
    }

    @Test func `the answer to a client that is not accepted ends its connection`() async throws {
      try await HTTPStage.run { _ in
      } server: {
        $0.identity.authenticate = { _ in throw Rejection(.unauthenticated, "unknown key")
        }
      } _: { stage in
        let frames = try await GatewayAttackTests.frames(of: HTTPStage.count)
        let peer = try await RawPeer.connect(to: stage.port)
        peer.send(Self.request(frames))
        let answer = await peer.hearsEnd()
        #expect(answer.hasPrefix("HTTP/1.1 200") && answer.contains("unknown key"))
        #expect(answer.lowercased().contains("connection: close"))
        #expect(await stage.server.counters().authentications.refused == 1)
      }
    }

    @Test func `a request whose client is being checked makes room, and does not run`()
      async throws
    {
      let isAsked = Watched(false)
      let mayAnswer = Watched(false)
      try await HTTPStage.run({ $0.maxConnections = 1 }) {
        $0.identity.authenticate = { _ in
          isAsked.change { $0 = true }
          await mayAnswer.until { $0 }
          return Authentication(Principal("ann"))
        }
      } _: { stage in
        let frames = try await GatewayAttackTests.frames(of: HTTPStage.echo, isStream: false)
        let peer = try await RawPeer.connect(to: stage.port)
        peer.send(Self.request(frames))
        await isAsked.until { $0 }
        let other = try await RawPeer.connect(to: stage.port)
        await peer.hearsEnd()
        mayAnswer.change { $0 = true }
        other.send(Self.request(frames))
        await other.hears("HTTP/1.1 200")
        #expect(stage.begun.value.values.reduce(0, +) == 1)
        other.close()
      }
    }

    @Test func `a server runs nothing for what a gateway gave up while it was opened`()
      async throws
    {
      try await HTTPStage.run { stage in
        let frames = try await GatewayAttackTests.frames(of: HTTPStage.echo, isStream: false)
        let stream = GivenUpTransport(frames)
        stage.server.accept(short: stream)
        await stream.isClosed.until { $0 }
        #expect(stage.begun.value.isEmpty)
        while await stage.server.counters().openConnections > 0 { await Task.yield() }
        #expect(await stage.server.counters().endings["closedByPeer"] == 1)
      }
    }
  }
}

/// A short link with a whole request, given up before the server has opened it.
private final class GivenUpTransport: AcceptedTransport, TransportCarrier {
  let peerAddress: SocketAddress? = nil
  let isClosed = Watched(false)
  private let bridge = TransportBridge(isConnected: true)

  init(_ frames: [UInt8]) {
    // The bytes are copied before the call returns.
    _ = unsafe frames.withUnsafeBytes { unsafe bridge.deliver($0) }
    bridge.endInput()
  }

  func adopt(on loop: LongLinkTransport.EventLoop) throws(SocketError) -> any Transport {
    BridgedTransport(bridge, carrier: self, on: loop, peerAddress: peerAddress)
  }

  func opened() -> Bool { false }
  func outputWaits() { _ = bridge.takeOutput() }
  func inputHasRoom() {}
  func transportClosed(isReset: Bool) { isClosed.change { $0 = true } }
}
#endif
