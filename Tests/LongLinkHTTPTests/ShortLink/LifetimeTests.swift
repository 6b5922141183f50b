// SPDX-License-Identifier: Apache-2.0

#if HTTP
import Foundation
import LongLink
import LongLinkDriver
import LongLinkHTTP
@testable import LongLinkHTTPServer
import LongLinkTestSupport
import Logging
import NIOCore
import NIOEmbedded
import Testing

extension HTTPTests {
  /// What is left of ways and gateways, and what their configuration allows.
  @Suite(.timeLimit(.minutes(5)), .serialized) struct HTTPLifetimeTests {
    /// The threads of this process that carry HTTP.
    private func threads() throws -> Int {
      try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count { id in
        let name = try? String(contentsOfFile: "/proc/self/task/\(id)/comm", encoding: .utf8)
        return name?.hasPrefix("NIO-ELT") == true
      }
    }

    @Test func `the sockets and the thread of a way end with the last that holds it`() async throws
    {
      try await HTTPStage.run { stage in
        let before = try threads()
        for _ in 0..<20 {
          var configuration = ClientConfiguration(ways: [try .http(url: stage.url)])
          configuration.logger.logLevel = .critical
          let client = try LongLinkClient(configuration)
          #expect(try await client.request(HTTPStage.echo, [1]) == [1])
          await client.close(within: .zero)
        }
        // The server sees the connections end, long before they are idle for too long.
        while stage.gateway.counters.openConnections > 0 { await Task.yield() }
        // Other tests add a few, for as long as they run.
        while try threads() > before + 5 { await Task.yield() }
      }
    }

    @Test func `a gateway that shuts down lets a running request finish`() async throws {
      try await HTTPStage.run { stage in
        let client = try stage.client()
        let stream = client.stream(HTTPStage.steps, [2])
        stage.begun.change { $0["step"] = 1 }
        var items = stream.makeAsyncIterator()
        #expect(try await items.next() == [1])
        async let end: Void = stage.gateway.shutDown(within: .seconds(30))
        // No new connection is taken any more.
        while (try? await RawPeer.connect(to: stage.port)) != nil { await Task.yield() }
        stage.begun.change { $0["step"] = 2 }
        #expect(try await items.next() == [2])
        #expect(try await items.next() == nil)
        await end
        #expect(stage.gateway.counters.openConnections == 0)
      }
    }

    /// A connection that is closed while half of a head has come has no answer to it.
    @Test func `a gateway that shuts down drops the half of a next request`() async throws {
      try await HTTPStage.run { stage in
        let frames = try await GatewayAttackTests.frames(of: HTTPStage.count)
        let peer = try await RawPeer.connect(to: stage.port)
        let head = GatewayAttackTests.head + "Content-Length: \(frames.count)\r\n\r\n"
        peer.send(Array(head.utf8) + frames + Array("POST /lo".utf8))
        await peer.hears("done")
        await stage.gateway.shutDown(within: .seconds(30))
        await peer.hearsEnd()
        #expect(peer.heard.value.text.ranges(of: "HTTP/1.1").count == 1)
        #expect(stage.gateway.counters.requests == 1)
      }
    }

    @Test func `a gateway whose socket has no IP address has not started`() async throws {
      try await HTTPStage.run { stage in
        let gateway = try LongLinkHTTPGateway(for: stage.server)
        let socket = NIOAsyncTestingChannel()
        let error = try await linkFailure { try await gateway.begin(socket, GatewayThreads(1)) }
        #expect(error.code == .connectFailed, "\(error)")
        try await socket.closeFuture.get()
        #expect(gateway.address == nil)
        let address = try await gateway.start()
        #expect(gateway.address == address)
        await gateway.shutDown(within: .zero)
      }
    }

    @Test func `settings out of range are named`() throws {
      func field(_ body: () throws -> Void) -> String? {
        do {
          try body()
          return nil
        } catch {
          return (error as? LongLinkError)?.field
        }
      }
      var options = HTTPWayOptions()
      options.headers = [("Content-Type", "x")]
      #expect(field { try options.validate() } == "headers")
      options.headers = [("X", "a\r\nb")]
      #expect(field { try options.validate() } == "headers")
      options.headers = [("a b", "c")]
      #expect(field { try options.validate() } == "headers")
      options = HTTPWayOptions()
      options.maxConnections = 0
      #expect(field { try options.validate() } == "maxConnections")
      options = HTTPWayOptions()
      options.tls.additionalRoots = [.file("/nowhere")]
      #expect(
        field { _ = try Way.http(url: "https://a/b", options: options) } == "tls.additionalRoots")
      for url in ["", "ftp://a/b", "http://", "no url"] {
        #expect(field { _ = try Way.http(url: url) } == "url", "\(url)")
      }
      #expect(try Way.http(url: "http://me:secret@a/b").name == "http://a/b")
      var gateway = HTTPGatewayConfiguration()
      gateway.path = "longlink"
      #expect(field { try gateway.validate() } == "path")
      gateway = HTTPGatewayConfiguration()
      gateway.trustedProxies = ["::1", "10.0.0.0/33"]
      #expect(field { try gateway.validate() } == "trustedProxies[1]")
    }
  }
}
#endif
