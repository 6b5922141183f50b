// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkTesting
import LongLinkTransport
import Testing

/// When a request is sent again that was lost with its short link.
@Suite struct ShortLinkRetryTests {
  /// Runs a body with a client whose first short links are cut.
  private static func run(
    _ cuts: [CuttingOpener.Cut], besides ways: [Way] = [], longestHint: Duration? = nil,
    _ body: @escaping @Sendable (Stage, LongLinkClient) async throws -> Void
  ) async throws {
    try await Stage.simulate { stage, _ in
      _ = try await stage.gateway(for: try await stage.serve())
      let client = try stage.client(cutting: cuts, besides: ways) {
        if let longestHint { $0.reconnect.longestHint = longestHint }
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

  /// What the first links end in, and how long the answer takes, in milliseconds.
  struct Delay: Sendable {
    var cuts: [CuttingOpener.Cut]
    var longestHint: Duration?
    var milliseconds: Range<Int>
  }

  private static let delays = [
    // 100 ms, 200 ms and 400 ms, of which at least the half.
    Delay(cuts: [.ending(0), .ending(0), .ending(0)], milliseconds: 350..<750),
    Delay(cuts: [.refusing(.seconds(7))], milliseconds: 7_000..<7_200),
    Delay(
      cuts: [.refusing(.seconds(3_600))], longestHint: .seconds(2), milliseconds: 2_000..<2_200),
  ]

  @Test(arguments: delays)
  func `each retry is delayed twice as long as the one before, or as the other side asks`(
    _ delay: Delay
  ) async throws {
    try await Self.run(delay.cuts, longestHint: delay.longestHint) { stage, client in
      let time = Int(try await Self.echo(stage, client) / .milliseconds(1))
      #expect(delay.milliseconds.contains(time), "\(time) ms")
      #expect(await client.counters().requests.retriedIdempotent == UInt64(delay.cuts.count))
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
    try await Self.run(cuts, besides: [.short]) { stage, client in
      _ = try await Self.echo(stage, client)
      let counters = await client.counters()
      #expect(counters.requests.retriedIdempotent == 3)
      #expect(counters.shortLinkRequests[Way.gatewayName] == 4)
    }
  }
}
