// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Logging
import Synchronization
import Testing

/// What errors of short links say of a request, and that nothing runs twice.
@Suite struct ShortLinkDeliveryTests {
  /// How often the request with this number ran.
  private final class Runs: Sendable {
    private let runs = Mutex<[UInt8: Int]>([:])

    func ran(_ key: UInt8) { runs.withLock { $0[key, default: 0] += 1 } }
    func count(_ key: UInt8) -> Int { runs.withLock { $0[key] ?? 0 } }
  }

  /// Runs a body with a server that counts runs of type 5, and what makes clients of its gateway
  /// with cuts.
  private static func stage(
    _ body:
      @escaping @Sendable (
        Stage, Runs, @Sendable ([CuttingOpener.Cut]) throws -> LongLinkClient
      ) async throws -> Void
  ) async throws {
    try await Stage.simulate { stage, _ in
      let runs = Runs()
      let server = try await stage.serve(setUp: { server in
        server.routeBasics()
        server.route(5) { request in
          runs.ran(request.body[0])
          return request.body
        }
        server.routeStream(6, .requestItems) { request, items, _ in
          for try await _ in items {}
          runs.ran(request.body[0])
          return request.body
        }
      })
      _ = try await stage.gateway(for: server)
      try await body(stage, runs) {
        try stage.client(cutting: $0) { $0.timeouts.request = .seconds(20) }
      }
    }
  }

  /// The outcome and the runs of a request whose first link is cut have to agree.
  private static func check(
    _ result: Result<[UInt8], LongLinkError>, _ key: UInt8, _ runs: Runs, _ cut: CuttingOpener.Cut
  ) {
    let count = runs.count(key)
    switch result {
    case .success(let body):
      #expect(body == [key] && count == 1, "\(cut)")
    case .failure(let error):
      #expect(error.delivery == .sent && count <= 1, "\(cut): \(error)")
      #expect(error.detail.contains(Way.gatewayName), "\(error)")
    }
  }

  private static func result(
    _ body: () async throws(LongLinkError) -> [UInt8]
  ) async -> Result<[UInt8], LongLinkError> {
    do throws(LongLinkError) {
      return .success(try await body())
    } catch {
      return .failure(error)
    }
  }

  /// Where a link is cut.
  enum Place: CaseIterable {
    case request
    case answer
    /// As if the answer had ended there.
    case end

    func cut(_ position: Int) -> CuttingOpener.Cut {
      switch self {
      case .request: .writing(position)
      case .answer: .reading(position)
      case .end: .ending(position)
      }
    }
  }

  @Test(arguments: Place.allCases)
  func `a link cut at any byte of the request or its answer loses or repeats nothing`(
    _ place: Place
  ) async throws {
    try await Self.stage { _, runs, makeClient in
      var (succeeded, failed) = (0, 0)
      for position in 0..<(place == .request ? 150 : 120) {
        let (key, cut) = (UInt8(position), place.cut(position))
        let client = try makeClient([cut])
        let result = await Self.result { () async throws(LongLinkError) in
          try await client.request(5, [key])
        }
        Self.check(result, key, runs, cut)
        if case .success = result { succeeded += 1 } else { failed += 1 }
        await client.close()
      }
      // Before the request's first byte it is sent again; behind its last one it is answered.
      #expect(place != .request || succeeded > 20 && failed > 10)
    }
  }

  @Test func `a link cut within the items fails with their number, and the request once`()
    async throws
  {
    try await Self.stage { _, runs, makeClient in
      for position in stride(from: 60, to: 6_000, by: 97) {
        let client = try makeClient([.writing(position)])
        let result = await Self.result { () async throws(LongLinkError) in
          do {
            return try await client.sendItems(6, [1]) { writer in
              for _ in 0..<5 { try await writer.write([UInt8](repeating: 1, count: 1_000)) }
            }
          } catch let error as LongLinkError {
            throw error
          } catch {
            return []
          }
        }
        if case .failure(let error) = result { #expect(error.delivery == .sent, "\(error)") }
        await client.close()
      }
      // Only those that were cut behind the last byte have run.
      #expect(runs.count(1) < 15)
    }
  }

  @Test func `an answer without a frame says what the stream knows`() async throws {
    try await Self.stage { _, _, makeClient in
      let client = try makeClient([.ending(0)])
      let error = try await failure { try await client.request(5, [1]) }
      #expect(error.code == .connectionLost && error.closeReason == .noResponse)
      #expect(error.detail == "short://10.0.0.1:8080: cut by the test", "\(error)")
      #expect(await client.counters().shortLinkRequestsUnanswered[Way.gatewayName] == 1)
      #expect(await client.counters().endings == ["noResponse": 1])
    }
  }

  @Test func `only a request that may run twice is repeated once it was sent`() async throws {
    try await Self.stage { _, runs, makeClient in
      let client = try makeClient([.ending(0), .ending(0)])
      let options = RequestOptions(idempotencyKey: [1], retry: .idempotent)
      let answer = try await client.request(5, [1], options: options)
      #expect(answer == [1] && runs.count(1) == 3)
    }
  }

  // MARK: The server

  @Test func `a draining server finishes what runs, and refuses the rest`() async throws {
    try await Stage.serving(in: .short) { server in
      server.routeBasics()
      server.route(5) { request in
        try await request.clock.sleep(for: .seconds(2))
        return request.body
      }
    } _: { stage, server, client in
      let slow = client.submit(5, [7], options: RequestOptions())
      try await stage.until { await server.counters().requestsRunning == 1 }
      let shutting = stage.spawn { await server.shutDown(within: .seconds(5)) }
      try await stage.clientLoop.sleep(for: .milliseconds(100))
      let options = RequestOptions(retry: .never)
      let error = try await failure { try await client.request(.echo, [1], options: options) }
      #expect(error.response == .draining && error.delivery == .refused)
      let answer = try await slow.value
      #expect(answer == [7])
      try await shutting.value
      // Nothing is taken any more: the stream ends without an answer.
      let last = try await failure { try await client.request(.echo, [1], options: options) }
      #expect(last.delivery == .sent || last.delivery == .notSent)
      #expect(await server.counters().connections.requestsReceived == 2)
    }
  }

  @Test func `a drain's bound ends what still runs`() async throws {
    try await Stage.serving(in: .short) { server in
      server.routeBasics()
      server.routeStream(10, .responseItems) { request, _, writer in
        try await writer.write([1])
        try await request.clock.sleep(for: .seconds(100))
        return []
      }
    } _: { stage, server, client in
      let hanging = client.submit(.hang, [], options: RequestOptions())
      let stream = stage.spawn { for try await _ in client.stream(10, []) {} }
      try await stage.until { await server.counters().requestsRunning == 2 }
      await server.shutDown(within: .seconds(1))
      let cut = try await failure { try await stream.value }
      for error in [cut, try await failure { try await hanging.value }] {
        #expect(error.code == .connectionLost && error.delivery == .sent, "\(error)")
        #expect(error.closeReason == .goneAway(.draining), "\(error)")
      }
    }
  }

  @Test func `requests go on when a server is there again`() async throws {
    try await Stage.simulate { stage, _ in
      let first = try await stage.serve()
      let gateway = try await stage.gateway(for: first)
      let client = try stage.client(of: first) { $0.ways = [.short] }
      try await client.expectEcho([1])
      await gateway.close()
      await first.shutDown(within: .zero)
      let waiting = client.submit(.echo, [2], options: RequestOptions(timeout: .seconds(300)))
      try await stage.clientLoop.sleep(for: .seconds(60))
      let second = try await stage.serve()
      _ = try await stage.gateway(for: second)
      let answer = try await waiting.value
      #expect(answer == [2])
    }
  }

  @Test func `a full server takes no more short links, and what was sent may have run`()
    async throws
  {
    try await Stage.pair(in: .short, server: { $0.limits.maxConnections = 1 }) {
      stage, server, client in
      let hanging = try await stage.hang(client, on: server)
      let error = try await failure { try await client.request(.echo, [1]) }
      #expect(error.delivery != .refused && error.delivery != .answered)
      #expect(await server.counters().connectionsTurnedAway > 0)
      hanging.cancel()
      _ = try? await hanging.value
    }
  }
}
