// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Synchronization
import Testing

/// Streams that are opened again when they are cut off: what ends them, and how often they are
/// opened.
@Suite struct ResumingStreamEndTests {
  /// Runs a body with a server whose streams of type 70 a handler serves, and a tally of the times
  /// at which they were opened.
  private static func run(
    _ handler:
      @escaping @Sendable (InboundRequest, ItemWriter<[UInt8]>) async throws -> [UInt8],
    client: @Sendable @escaping (inout ClientConfiguration) -> Void = { _ in },
    _ body:
      @escaping @Sendable (Stage, LongLinkServer, LongLinkClient, Tally<LinkInstant>) async throws
      -> Void
  ) async throws {
    let opens = Tally<LinkInstant>()
    try await Stage.serving(
      { server in
        server.routeStream(70, .responseItems) { request, _, writer in
          opens.add(request.clock.now)
          return try await handler(request, writer)
        }
      }, client: client
    ) { stage, server, client in try await body(stage, server, client, opens) }
  }

  private static func take(_ stream: ResumingStream<[UInt8]>) async throws -> Int {
    var count = 0
    for try await _ in stream { count += 1 }
    return count
  }

  // MARK: What ends it

  @Test func `the response ends it`() async throws {
    try await Self.run { request, writer in
      try await writer.write([1])
      return Array("done".utf8)
    } _: { _, _, client, opens in
      var stream = client.stream(70, resuming: { _ in [UInt8]() })
      let first = try await stream.next()
      #expect(first == [1])
      for _ in 0..<3 { #expect(try await stream.next() == nil) }
      #expect(opens.count == 1)
    }
  }

  @Test(arguments: [false, true])
  func `the error of a handler ends it, unless the application says otherwise`(
    isRetried: Bool
  ) async throws {
    try await Self.run { request, writer in
      try await writer.write([1])
      throw Rejection(1_234, body: [9])
    } _: { stage, server, client, opens in
      let asked = Tally<LongLinkError>()
      var stream = client.stream(
        70, resuming: { $0 ?? [] },
        retryingWhen: { error in
          asked.add(error)
          return isRetried && asked.count < 3
        })
      var count = 0
      let error = try await failure { while try await stream.next() != nil { count += 1 } }
      #expect(error.response == 1_234 && error.body == [9] && error.delivery == .answered)
      #expect(count == (isRetried ? 3 : 1) && opens.count == count && asked.count == count)
      #expect(error.itemsReceived == UInt64(count))
      // Later calls throw it again.
      #expect(try await failure { try await stream.next() } == error)
      let counters = await client.counters()
      #expect(counters.requestsOpen == 0)
    }
  }

  @Test func `a refusal that will not pass ends it`() async throws {
    try await Self.run { request, _ in
      throw Rejection(.malformed)
    } _: { stage, _, client, _ in
      let unknown = try await failure {
        try await Self.take(client.stream(71, resuming: { _ in [UInt8]() }))
      }
      #expect(unknown.response == .unknownType && unknown.delivery == .refused)
      let malformed = try await failure {
        for try await _ in client.stream(
          RPCMethod<[UInt8], Streamed<Note>>(70), resuming: { _ in [] })
        {}
      }
      #expect(malformed.response == .malformed && malformed.delivery == .answered, "\(malformed)")
    }
  }

  @Test func `an item that does not decode ends it`() async throws {
    try await Self.run { _, writer in
      try await writer.write([7])
      try await writer.write([255])
      return []
    } _: { _, _, client, opens in
      let method = RPCMethod<[UInt8], Streamed<Note>>(70)
      var stream = client.stream(method, resuming: { _ in [] })
      #expect(try await stream.next() == Note(7))
      let error = try await failure { try await stream.next() }
      #expect(error.code == .decodingFailed && error.itemsReceived == 1 && opens.count == 1)
    }
  }

  @Test func `a stream that need not wait for a connection fails without one, at first alone`()
    async throws
  {
    let options = StreamOptions(waitsForConnection: false)
    try await Stage.simulate { stage, simulation in
      let log = NumberLog()
      let server = try await stage.serve(setUp: { log.route(on: $0) })
      let client = try stage.client(of: server)
      simulation.network.connects = .refused
      _ = try? await client.connect()
      let error = try await failure {
        try await Self.take(NumberLog.stream(client, options: options))
      }
      #expect(error.code == .notConnected && error.delivery == .notSent)
      simulation.network.connects = .normal
      try await client.connect()
      let reader = NumberReader(NumberLog.stream(client, options: options))
      try await reader.read(to: 10)
      simulation.network.connects = .refused
      for peer in await server.peers() { peer.close() }
      let healing = stage.spawn {
        try await simulation.sleep(for: .seconds(100))
        simulation.network.connects = .normal
      }
      try await reader.read(to: 2_000)
      try await healing.value
      #expect(reader.losses.count == 1)
    }
  }

  // MARK: Its end during a delay

  @Test func `a task that is cancelled during a delay ends it at once`() async throws {
    try await Self.run { _, _ in
      throw Rejection(.draining, retryAfter: .seconds(200))
    } _: { stage, server, client, opens in
      let reading = stage.spawn {
        try await Self.take(client.stream(70, resuming: { _ in [UInt8]() }))
      }
      try await stage.until { opens.count == 1 }
      try await stage.clientLoop.sleep(for: .seconds(100))
      let begin = stage.clientLoop.clock.now
      reading.cancel()
      let error = try await failure { try await reading.value }
      #expect(error.code == .cancelled && error.delivery == .answered, "\(error)")
      #expect(begin.duration(to: stage.clientLoop.clock.now) < .milliseconds(1))
      #expect(await client.counters().requestsOpen == 0)
      try await stage.clientLoop.sleep(for: .seconds(300))
      #expect(opens.count == 1)
    }
  }

  @Test func `the close of the client during a delay ends it at once`() async throws {
    try await Self.run { _, _ in
      throw Rejection(.draining, retryAfter: .seconds(200))
    } _: { stage, server, client, opens in
      let reading = stage.spawn {
        try await Self.take(
          client.stream(70, resuming: { _ in [UInt8]() }, retryingWhen: { _ in true }))
      }
      try await stage.until { opens.count == 1 }
      let begin = stage.clientLoop.clock.now
      await client.close()
      let error = try await failure { try await reading.value }
      #expect(error.code == .closed, "\(error)")
      #expect(begin.duration(to: stage.clientLoop.clock.now) < .seconds(1))
      let later = try await failure {
        try await Self.take(client.stream(70, resuming: { _ in [UInt8]() }))
      }
      #expect(later.code == .closed && later.delivery == .notSent)
    }
  }

  @Test func `the timeout bounds the whole`() async throws {
    try await Stage.simulate { stage, _ in
      let log = NumberLog()
      let server = try await stage.serve(setUp: { log.route(on: $0) })
      let client = try stage.client(of: server)
      let begin = stage.clientLoop.clock.now
      let reader = NumberReader(
        NumberLog.stream(
          client, options: StreamOptions(timeout: .seconds(30)), retryingWhen: { _ in true }))
      try await reader.read(to: 50)
      for peer in await server.peers() { peer.close() }
      try await reader.read(to: 100)
      await server.shutDown(within: .zero)
      let error = try await failure { try await reader.read(to: 1_000) }
      #expect(error.code == .deadlineExceeded && error.delivery == .sent, "\(error)")
      #expect(error.itemsReceived == reader.last)
      let passed = begin.duration(to: stage.clientLoop.clock.now)
      #expect(passed >= .seconds(30) && passed < .seconds(30.1))
    }
  }

  @Test func `a stream is opened again when no item comes in time`() async throws {
    try await Self.run { request, writer in
      try await writer.write([1])
      try await request.clock.sleep(for: .seconds(10_000))
      return []
    } _: { stage, server, client, opens in
      let options = StreamOptions(itemTimeout: .seconds(5))
      var stream = client.stream(70, options: options, resuming: { _ in [UInt8]() }).events
      _ = try await stream.next()
      guard case .resumed(let error?, 1) = try await stream.next() else {
        Issue.record("it was not resumed")
        return
      }
      #expect(error.code == .deadlineExceeded && error.delivery == .sent)
      _ = try await stream.next()
      // Offline, nobody is late.
      let endpoint = server.endpoints[0]
      await server.shutDown(within: .zero)
      let restarting = stage.spawn {
        try await stage.clientLoop.sleep(for: .seconds(60))
        return try await stage.serve(
          at: endpoint,
          setUp: { server in
            server.routeStream(70, .responseItems) { _, _, writer in
              try await writer.write([2])
              return []
            }
          })
      }
      guard case .resumed(_, 1) = try await stream.next() else {
        Issue.record("it was opened more than once")
        return
      }
      guard case .item([2]) = try await stream.next() else {
        Issue.record("the item is missing")
        return
      }
      _ = try await restarting.value
      #expect(try await stream.next() == nil)
    }
  }

  // MARK: How often it is opened

  /// Counts how often a stream is opened in an hour, and returns the longest pause.
  private static func opens(
    _ handler:
      @escaping @Sendable (InboundRequest, ItemWriter<[UInt8]>) async throws -> [UInt8],
    retrying: Bool = false
  ) async throws -> (count: Int, longest: Duration) {
    let result = Mutex((0, Duration.zero))
    try await run(handler) { stage, _, client, opens in
      let reading = stage.spawn {
        try await take(client.stream(70, resuming: { $0 ?? [] }, retryingWhen: { _ in retrying }))
      }
      try await stage.clientLoop.sleep(for: .seconds(3_600))
      reading.cancel()
      let error = try await failure { try await reading.value }
      #expect(error.code == .cancelled, "\(error)")
      let times = opens.elements
      let longest = zip(times, times.dropFirst()).map { $0.duration(to: $1) }.max() ?? .zero
      result.withLock { $0 = (times.count, longest) }
    }
    return result.withLock { $0 }
  }

  @Test func `a server that ends it at once is asked about a hundred times an hour`()
    async throws
  {
    let draining = try await Self.opens { _, _ in throw Rejection(.draining) }
    #expect((100...125).contains(draining.count) && draining.longest <= .seconds(36.1))
    let failing = try await Self.opens({ _, _ in throw Rejection(.failed) }, retrying: true)
    #expect((100...125).contains(failing.count) && failing.longest <= .seconds(36.1))
    let closing = try await Self.opens { request, _ in
      request.peer.close()
      try await request.clock.sleep(for: .seconds(1))
      return []
    }
    #expect((90...130).contains(closing.count), "\(closing)")
  }

  @Test func `what this side refuses is tried again as seldom, and hears a cancellation`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve()
      let tried = Tally<Void>()
      let client = try stage.client(of: server) {
        $0.interceptors = [
          { _ in
            tried.add(())
            throw Rejection(.failed, "refused here")
          }
        ]
      }
      let reading = stage.spawn {
        let stream = client.stream(70, resuming: { $0 ?? [] }, retryingWhen: { _ in true })
        for try await _ in stream {}
      }
      try await simulation.sleep(for: .seconds(3_600))
      #expect((100...130).contains(tried.count), "\(tried.count)")
      let begin = simulation.now
      reading.cancel()
      _ = try await failure { try await reading.value }
      #expect(begin.duration(to: simulation.now) < .milliseconds(10))
    }
  }

  @Test func `a server is asked no sooner than it says`() async throws {
    let asked = try await Self.opens { _, _ in
      throw Rejection(.overloaded, retryAfter: .seconds(200))
    }
    #expect((17...19).contains(asked.count), "\(asked)")
    // Up to the longest hint of the policy.
    let patient = try await Self.opens { _, _ in
      throw Rejection(.overloaded, retryAfter: .seconds(100_000))
    }
    #expect(patient.count == 12 || patient.count == 13, "\(patient)")
  }

  @Test func `a stream that has worked begins with the first window`() async throws {
    let withItems = try await Self.opens { _, writer in
      try await writer.write([1])
      throw Rejection(.draining)
    }
    #expect((6_000...8_500).contains(withItems.count), "\(withItems)")
    #expect(withItems.longest <= .seconds(1.1))
    let lasting = try await Self.opens { request, _ in
      try await request.clock.sleep(for: .seconds(31))
      throw Rejection(.draining)
    }
    #expect(lasting.count >= 112 && lasting.longest <= .seconds(32.1), "\(lasting)")
  }

  @Test func `a run is repeated by its seed`() async throws {
    let first = try await Self.opens { _, _ in throw Rejection(.draining) }
    let second = try await Self.opens { _, _ in throw Rejection(.draining) }
    #expect(first == second)
  }
}
