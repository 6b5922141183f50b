// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTLS
import Logging
import LongLinkTestSupport
import Synchronization
import Testing

/// What somebody on the path can read.
@Suite struct CaptureTests {
  /// The runs of eight bytes that a capture and texts have in common.
  static func shared(_ capture: [[UInt8]], with texts: [[UInt8]]) -> Int {
    func windows(_ bytes: [UInt8]) -> Set<UInt64> {
      var windows = Set<UInt64>()
      var window: UInt64 = 0
      for (index, byte) in bytes.enumerated() {
        window = window << 8 | UInt64(byte)
        if index >= 7 { windows.insert(window) }
      }
      return windows
    }
    let secrets = texts.reduce(into: Set()) { $0.formUnion(windows($1)) }
    return capture.reduce(0) { $0 + windows($1).intersection(secrets).count }
  }

  /// A text of which each run of eight bytes is its own.
  private static func marker(_ name: String, _ count: Int) -> [UInt8] {
    Array((0..<count).map { "\(name)-\($0 * 7_919 % 100_003);" }.joined().utf8)
  }

  @Test(arguments: [true, false])
  func `no run of eight bytes of a body or a credential can be read`(isSecured: Bool) async throws {
    let credential = Self.marker("credential", 20)
    let (body, answer, push) = (
      Self.marker("request", 4_000), Self.marker("answer", 300), Self.marker("push", 50)
    )
    let capture = try await Self.record(
      isSecured: isSecured, credential: credential, body: body, answer: answer, push: push)
    let found = Self.shared(capture, with: [credential, body, answer, push])
    // The same without TLS shows that the test can find them.
    if isSecured {
      #expect(found == 0)
      #expect(capture.reduce(0) { $0 + $1.count } > 2 * body.count + answer.count)
    } else {
      #expect(found > (body.count + answer.count) / 2)
    }
  }

  /// Sends all of it twice, the second time over a resumed connection, and returns what a relay has
  /// seen.
  private static func record(
    isSecured: Bool, credential: [UInt8], body: [UInt8], answer: [UInt8], push: [UInt8]
  ) async throws -> [[UInt8]] {
    var server = ServerConfiguration(listen: [.host("127.0.0.1", port: 0)])
    server.logger.logLevel = .critical
    server.security = isSecured ? try .tls(.with()) : nil
    server.identity.authenticate = { request in
      request.credential == credential ? Authentication(Principal("client")) : .anonymous
    }
    let running = try LongLinkServer(server)
    running.route(World.echo) { request async throws in
      try await request.peer.push(5, push)
      return request.body == body ? answer : []
    }
    try await running.start()
    let relay = try RecordingRelay(to: running.addresses[0].port ?? 0)
    let security: ClientSecurity? = isSecured ? try .tls(.trusting()) : nil
    for _ in 0..<2 {
      var configuration = ClientConfiguration(servers: [.host("127.0.0.1", port: relay.port)])
      configuration.logger.logLevel = .critical
      configuration.security = security
      configuration.identity.credential = { credential }
      configuration.identity.sendsCredentialUnencrypted = !isSecured
      let client = try LongLinkClient(configuration)
      let pushes = client.pushes(of: 5)
      #expect(try await client.request(World.echo, body) == answer)
      for await news in pushes {
        #expect(news.body == push)
        break
      }
      await client.close()
    }
    await running.shutDown(within: .zero)
    relay.close()
    return relay.capture
  }
}
