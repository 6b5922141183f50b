// SPDX-License-Identifier: Apache-2.0

#if HTTP
import Foundation
import LongLink
import LongLinkHTTP
import LongLinkHTTPServer
import Testing

extension HTTPTests {
  /// What the options of a gateway change.
  @Suite struct GatewayOptionTests {
    @Test func `a connection without requests is closed after its time`() async throws {
      try await HTTPStage.run({ $0.keepAliveTimeout = .milliseconds(50) }) { stage in
        var options = HTTPWayOptions()
        options.idleTimeout = .seconds(300)
        let client = try stage.client(options: options)
        #expect(try await client.request(HTTPStage.echo, [1]) == [1])
        try await until { stage.gateway.counters.openConnections == 0 }
        #expect(try await client.request(HTTPStage.echo, [2]) == [2])
      }
    }

    @Test(arguments: [
      (HTTPGatewayConfiguration.ForwardedHeader.xForwardedFor, "203.0.113.7"),
      (.forwarded, "192.0.2.1"),
    ])
    func `the header that the proxies set names the client`(
      _ header: HTTPGatewayConfiguration.ForwardedHeader, _ expected: String
    ) async throws {
      try await HTTPStage.run {
        $0.trustedProxies = ["127.0.0.1"]
        $0.forwardedHeader = header
      } _: { stage in
        var options = HTTPWayOptions()
        options.headers = [("X-Forwarded-For", "203.0.113.7"), ("Forwarded", "for=192.0.2.1")]
        let client = try stage.client(options: options)
        let address = try await client.request(HTTPStage.address, [])
        #expect(String(decoding: address, as: UTF8.self) == expected)
      }
    }

    #if os(Linux)
    @Test(arguments: [1, 3])
    func `a gateway has so many threads`(_ count: Int) async throws {
      let before = Self.threads
      try await HTTPStage.run({ $0.threads = count }) { _ in
        #expect(Self.threads.subtracting(before).count == count)
      }
    }

    /// The names of the threads of swift-nio; each group has a number, and the shared one a name.
    private static var threads: Set<String> {
      let tasks = "/proc/self/task"
      let numbers = (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? []
      return Set(
        numbers.compactMap { number in
          let name = try? String(contentsOfFile: "\(tasks)/\(number)/comm", encoding: .utf8)
          return name.flatMap { $0.hasPrefix("NIO-ELT-") ? $0 : nil }
        })
    }
    #endif
  }
}
#endif
