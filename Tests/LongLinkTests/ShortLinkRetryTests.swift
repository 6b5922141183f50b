// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkTesting
import LongLinkTransport
import Logging
import Testing

/// When a request is sent again that was lost with its short link.
@Suite struct ShortLinkRetryTests {
  private static let address = ShortLinkTests.gatewayAddress

  /// Runs a body with a client whose first short links are cut.
  private static func run(
    _ cuts: [CuttingOpener.Cut], besides ways: [Way] = [],
    configure: @Sendable @escaping (inout ClientConfiguration) -> Void = { _ in },
    _ body: @escaping @Sendable (Stage, LongLinkClient) async throws -> Void
  ) async throws {
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve()
      _ = try await stage.gateway(for: server)
      let client = try stage.client(to: []) {
        $0 = ClientConfiguration(ways: [Way(short: CuttingOpener(to: Self.address, cuts))] + ways)
        $0.logger.logLevel = .critical
        configure(&$0)
      }
      try await body(stage, client)
    }
  }

  /// Sends a request that may run twice, and returns how long its answer took.
  private static func echo(_ stage: Stage, _ client: LongLinkClient) async throws -> Duration {
    let start = stage.clientLoop.clock.now
    let options = RequestOptions(idempotencyKey: [1], retry: .idempotent)
    let answer = try await client.request(.echo, [1], options: options)
    #expect(answer == [1])
    return start.duration(to: stage.clientLoop.clock.now)
  }

  @Test func `each retry is delayed, by twice as much as the one before`() async throws {
    try await Self.run([.ending(0), .ending(0), .ending(0)]) { stage, client in
      let time = try await Self.echo(stage, client)
      // 100 ms, 200 ms and 400 ms, of which at least the half.
      #expect(time >= .milliseconds(350) && time < .milliseconds(750), "\(time)")
      #expect(await client.counters().requests.retriedIdempotent == 3)
    }
  }

  @Test func `the delay is at least what the other side asks for`() async throws {
    try await Self.run([.refusing(.seconds(7))]) { stage, client in
      let time = try await Self.echo(stage, client)
      #expect(time >= .seconds(7) && time < .milliseconds(7_200), "\(time)")
    }
  }

  @Test func `which can ask for the longest hint at most`() async throws {
    try await Self.run([.refusing(.seconds(3_600))]) {
      $0.reconnect.longestHint = .seconds(2)
    } _: { stage, client in
      let time = try await Self.echo(stage, client)
      #expect(time >= .seconds(2) && time < .milliseconds(2_200), "\(time)")
    }
  }

  @Test func `a retry that the deadline would forestall is not waited for`() async throws {
    try await Self.run([.refusing(.seconds(60))]) { stage, client in
      let start = stage.clientLoop.clock.now
      let options = RequestOptions(
        timeout: .seconds(20), idempotencyKey: [1], retry: .idempotent)
      let error = try await failure { try await client.request(.echo, [1], options: options) }
      #expect(start.duration(to: stage.clientLoop.clock.now) < .seconds(1))
      #expect(error.code == .connectionLost && error.delivery == .sent)
      #expect(error.retryAfter == .seconds(60) && error.detail.contains("not retried"), "\(error)")
    }
  }

  @Test func `a request finds the next way by its own retries`() async throws {
    let cuts = [CuttingOpener.Cut](repeating: .ending(0), count: 100)
    try await Self.run(cuts, besides: [.simulatedShort(to: Self.address)]) { stage, client in
      _ = try await Self.echo(stage, client)
      let counters = await client.counters()
      #expect(counters.requests.retriedIdempotent == 3)
      #expect(counters.shortLinkRequests["short://10.0.0.1:8080"] == 4)
    }
  }
}
