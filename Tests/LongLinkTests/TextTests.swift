// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTestSupport
import LongLinkTesting
import LongLinkTransport
import Testing

/// How values that are printed and logged look.
@Suite struct TextTests {
  private struct Broken: Error {}

  @Test func `an instant is seconds since the origin of its clock`() {
    let texts: [(Int64, String)] = [
      (0, "0.000000000 s"), (3_508_799_106_781, "3508.799106781 s"), (-1, "-0.000000001 s"),
      (.min, "-9223372036.854775808 s"),
    ]
    for (nanoseconds, text) in texts {
      #expect("\(LinkInstant(nanoseconds: nanoseconds))" == text)
    }
  }

  @Test func `a state names the server`() {
    let address = SocketAddress.ipv4(127, 0, 0, 1, port: 9_000)
    let other = Endpoint.host("b", port: 1)
    #expect("\(ConnectionState.connected(address))" == "connected(127.0.0.1:9000)")
    #expect("\(ConnectionState.connected(nil))" == "connected(unknown address)")
    #expect(
      "\(ConnectionState.migrating(address, to: other))" == "migrating(127.0.0.1:9000, to: b:1)")
    #expect("\(ConnectionState.notAccepted(.forbidden))" == "notAccepted(403)")
  }

  @Test func `counters are a line for each that is not zero`() async throws {
    try await Stage.pair { stage, server, client in
      try await client.expectEcho([1])
      let lines = "\(await client.counters())".split(separator: "\n")
      #expect(lines.contains("requests.succeeded: 1") && lines.contains("connects: 1"))
      #expect(!lines.contains { $0.hasSuffix(": 0") || $0.hasSuffix("[:]") }, "\(lines)")
      await client.close()
      try await stage.until { await server.counters().openConnections == 0 }
      let served = "\(await server.counters())".split(separator: "\n")
      #expect(served.contains("connectionsAccepted: 1"))
      #expect(served.contains("endings.closedByPeer: 1"), "\(served)")
    }
  }

  @Test func `a request tells how long its caller still waits`() async throws {
    let remaining = Tally<Duration?>()
    try await Stage.serving { server in
      server.route(1) { request in
        remaining.add(request.timeRemaining)
        try await request.clock.sleep(for: .seconds(4))
        remaining.add(request.timeRemaining)
        return request.body
      }
    } _: { _, _, client in
      _ = try await client.request(1, [1], options: RequestOptions(timeout: .seconds(10)))
    }
    let times = try remaining.elements.map { try #require($0) }
    #expect(times[0] <= .seconds(10) && times[0] > .seconds(9))
    #expect(times[0] - times[1] >= .seconds(4) && times[1] > .seconds(5))
  }

  @Test func `log lines of a method's requests have its name`() async throws {
    let lines = LogLines()
    let say = RPCMethod<[UInt8], [UInt8]>(30, "Say", of: "talk.Talk")
    try await Stage.serving { server in
      server.route(say) { _, _ in throw Broken() }
      server.route(31) { _ in throw Broken() }
    } server: {
      $0.logger = lines.logger
    } _: { _, _, client in
      for type: MessageType in [30, 31] {
        _ = try await failure { try await client.request(type, [1]) }
      }
    }
    let told = lines.all.filter { $0.message == "A handler failed" }.map { $0.metadata["method"] }
    #expect(told == ["talk.Talk/Say", nil])
  }
}
