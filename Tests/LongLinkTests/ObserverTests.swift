// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCore
import LongLinkDriver
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Synchronization
import Testing

/// What observers hear of requests and links.
struct ObserverTests {
  /// Runs a client and a server that are observed; in the end, all that began must have ended.
  private func observe(
    configure: @escaping @Sendable (inout ServerConfiguration) -> Void = { _ in },
    routes: @escaping @Sendable (LongLinkServer) -> Void = { _ in },
    _ body:
      @escaping @Sendable (Stage, LongLinkServer, LongLinkClient, Watcher, Watcher) async throws
      -> Void
  ) async throws {
    let (mine, others) = (Watcher("the client"), Watcher("the server"))
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve { server in
        server.routeBasics()
        routes(server)
      } configure: { configuration in
        configure(&configuration)
        configuration.observers = Observers([others])
      }
      let client = try stage.client(of: server) { $0.observers = Observers([mine]) }
      try await body(stage, server, client, mine, others)
    }
    for watcher in [mine, others] {
      #expect(watcher.openCount == 0, "\(watcher.name)")
      #expect(watcher.faults == [], "\(watcher.name)")
    }
  }

  @Test func `each way to make a request is recorded on both sides`() async throws {
    try await observe(routes: {
      $0.route(10) { request async in request.body }
      $0.routeStream(11, .responseItems) { _, _, writer in
        try await writer.write([1, 2])
        return [3]
      }
    }) { stage, _, client, mine, others in
      _ = try await client.request(.echo, [1, 2, 3])
      _ = try await client.submit(10, [1]).value
      let gate = Latch()
      client.request(10, [1, 2], on: .connectionLoop) { _ in gate.open() }
      await gate.wait()
      for try await _ in client.stream(11, []) {}
      let expected = [
        Watcher.Exchange(type: .echo, ending: .answered(.ok), delivery: .answered, sent: 3, got: 3),
        Watcher.Exchange(type: 10, ending: .answered(.ok), delivery: .answered, sent: 1, got: 1),
        Watcher.Exchange(type: 10, ending: .answered(.ok), delivery: .answered, sent: 2, got: 2),
        Watcher.Exchange(type: 11, ending: .answered(.ok), delivery: .answered, got: 1),
      ]
      #expect(mine.ended == expected)
      #expect(others.handled == expected)
    }
  }

  @Test func `each refusal and rejection is recorded with its code, the core's too`() async throws {
    try await observe {
      $0.limits.maxInFlight = 1
    } routes: {
      $0.route(10, requires: .authenticated) { $0.body }
    } _: { stage, _, client, mine, others in
      _ = try await failure { try await client.request(.fail, []) }
      _ = try await failure { try await client.request(10, []) }
      _ = try await failure { try await client.request(99, []) }
      let expected = [
        Watcher.Exchange(type: .fail, ending: .answered(1_234), delivery: .answered, got: 3),
        Watcher.Exchange(type: 10, ending: .refused(.forbidden), delivery: .refused),
        Watcher.Exchange(type: 99, ending: .refused(.unknownType), delivery: .refused),
      ]
      #expect(others.handled.map(\.ending) == expected.map(\.ending))
      #expect(others.handled.map(\.attempts) == [1, 0, 0])
      #expect(mine.ended.map(\.ending) == expected.map(\.ending))
      #expect(mine.ended.map(\.delivery) == expected.map(\.delivery))
    }
  }

  @Test func `requests that the core refuses are recorded`() async throws {
    let others = Watcher("the server")
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve { server in
        server.routeBasics()
      } configure: {
        $0.limits.maxInFlight = 1
        $0.observers = Observers([others])
      }
      let peer = try await SimulatedClient.connect(
        to: try #require(server.addresses.first), on: stage.clientLoop)
      try await peer.sayHello()
      peer.send([.request(.hang, serial: 50), .request(.echo, serial: 51)])
      try await stage.until { others.handled.count == 1 }
      #expect(others.handled.first?.ending == .refused(.overloaded))
      #expect(others.handled.first?.attempts == 0)
      peer.close()
      try await stage.until { others.openCount == 0 }
      #expect(others.handled.last?.type == .hang)
      #expect(others.links.map(\.underWay) == [[0, 1]])
    }
    #expect(others.faults == [])
  }

  @Test func `what ends without an answer is recorded with its reason`() async throws {
    try await observe { stage, server, client, mine, others in
      // Given up by the caller.
      let task = stage.spawn { try await client.request(.hang, []) }
      try await stage.until { others.openCount == 2 }
      task.cancel()
      _ = await task.result
      // Past its deadline.
      let options = RequestOptions(timeout: .milliseconds(100))
      _ = try await failure { try await client.request(.hang, [], options: options) }
      try await stage.until { others.handled.count == 2 }
      // Lost with its connection.
      let lost = stage.spawn { try await client.request(.hang, []) }
      try await stage.until { others.openCount == 2 }
      for peer in await server.peers() { peer.close() }
      _ = await lost.result
      try await stage.until { others.links.count == 1 && mine.links.count == 1 }
      #expect(mine.ended.map(\.ending) == [.cancelled, .expired, .lost(.closedByPeer)])
      #expect(mine.ended.map(\.delivery) == [.sent, .sent, .sent])
      #expect(
        others.handled.map(\.ending)
          == [.cancelled, .interrupted(.deadlinePassed), .lost(.closedHere)])
      #expect(mine.links.map(\.underWay) == [[1, 0]])
      #expect(others.links.map(\.underWay) == [[0, 1]])
      #expect(mine.links.map(\.reason) == [.closedByPeer])
    }
  }

  @Test func `what is never sent is recorded too`() async throws {
    let mine = Watcher("the client")
    try await Stage.simulate { stage, _ in
      let client = try stage.client(to: [.host("10.0.0.9", port: 9)]) {
        $0.observers = Observers([mine])
      }
      let options = RequestOptions(waitsForConnection: false)
      _ = try await failure { try await client.request(.echo, [], options: options) }
      await client.close()
      _ = try await failure { try await client.request(.echo, []) }
      // With a completion handler, which is called later.
      client.request(.echo, [], on: .connectionLoop) { _ in }
      #expect(mine.ended.count == 3)
      let early = stage.spawn { try await client.request(.echo, []) }
      early.cancel()
      _ = await early.result
      #expect(mine.ended.map(\.attempts) == [0, 0, 0, 0])
      #expect(mine.ended.allSatisfy { $0.delivery == .notSent })
      #expect(mine.links.contains { !$0.wasOpened })
    }
    #expect(mine.openCount == 0)
    #expect(mine.faults == [])
  }

  @Test func `a request that is retried has one record with its attempts`() async throws {
    let calls = Tally<Int>()
    try await observe(routes: {
      $0.route(10) { request async throws in
        calls.add(1)
        if calls.count == 1 {
          request.peer.close()
          try await request.clock.sleep(for: .seconds(1_000))
        }
        return request.body
      }
    }) { stage, _, client, mine, others in
      let options = RequestOptions(retry: .idempotent)
      _ = try await client.request(10, [7], options: options)
      #expect(mine.ended.map(\.attempts) == [2])
      #expect(mine.ended.map(\.ending) == [.answered(.ok)])
      #expect(others.handled.count == 2)
      #expect(others.links.first?.isShort == false)
    }
  }

  @Test func `a retry that is refused is recorded as refused, though it may have run`()
    async throws
  {
    let calls = Tally<Int>()
    try await observe(routes: {
      $0.route(10, requires: .custom { _ in calls.count == 0 }) { request async throws in
        calls.add(1)
        request.peer.close()
        try await request.clock.sleep(for: .seconds(1_000))
        return request.body
      }
    }) { stage, _, client, mine, others in
      let options = RequestOptions(retry: .idempotent)
      let error = try await failure { try await client.request(10, [7], options: options) }
      #expect(error.delivery == .sent)
      #expect(mine.ended.map(\.ending) == [.refused(.forbidden)])
      #expect(mine.ended.map(\.delivery) == [.sent])
      #expect(others.handled.map(\.delivery) == [.sent, .refused])
    }
  }

  @Test func `a response that finds its connection ended is recorded as lost`() async throws {
    try await observe {
      ($0.limits.waterMarks.high, $0.limits.maxUnreadOutput) = (1 << 24, 1 << 24)
    } routes: {
      $0.route(10) { request in
        // The response finds more unread than the limit allows.
        while (try? request.peer.pushNow(7, [UInt8](repeating: 0, count: 60_000))) != nil {}
        return [1]
      }
    } _: { stage, _, client, mine, others in
      let options = RequestOptions(retry: .never)
      _ = try await failure { try await client.request(10, [], options: options) }
      try await stage.until { others.links.count == 1 }
      #expect(others.links.map(\.reason) == [.unreadOutput])
      #expect(others.handled.map(\.ending) == [.lost(.unreadOutput)])
    }
  }

  @Test func `a request that waits in vain after a connection was lost was not lost with it`()
    async throws
  {
    try await observe { stage, server, client, mine, others in
      _ = try await client.request(.echo, [])
      await server.shutDown(within: .zero)
      try await stage.until { mine.links.count > 0 }
      let options = RequestOptions(waitsForConnection: false)
      try await stage.until {
        (try? await client.request(.echo, [], options: options)) == nil
          && mine.ended.last?.ending == .failed(.notConnected)
      }
      #expect(mine.ended.last?.attempts == 0)
    }
  }

  @Test func `metadata and scopes lead from the caller through handlers and back`() async throws {
    let seen = Tally<String>()
    try await observe(routes: {
      $0.route(10) { request async throws in
        seen.add("\(request.metadata["context"] ?? "") / \(Watcher.context)")
        return try await request.peer.request(20, [])
      }
      $0.route(11) { request in
        seen.add(Watcher.context)
        return request.body
      }
    }) { stage, _, client, mine, others in
      client.onRequest(20) { request in
        seen.add(Watcher.context)
        return request.body
      }
      try await Watcher.$context.withValue("a user") {
        _ = try await client.request(10, [])
        _ = try await client.request(
          11, [], options: RequestOptions(metadata: ["context": "own", "other": "kept"]))
      }
      #expect(
        seen.elements == [
          "a user / a user by the server", "a user by the server by the client",
          "a user by the server",
        ])
      #expect(others.ended.map(\.ending) == [.answered(.ok)])
      #expect(mine.handled.map(\.ending) == [.answered(.ok)])
    }
  }

  @Test func `metadata of observers gives way where there is no room`() async throws {
    let seen = Tally<Bool>()
    try await observe {
      $0.limits.maxBody = 1_000; $0.limits.maxRequestBytes = 1_000
    } routes: {
      $0.route(10) { request in
        seen.add(request.metadata["context"] != nil)
        return []
      }
    } _: { _, _, client, _, _ in
      let long = String(repeating: "x", count: 5_000)
      try await Watcher.$context.withValue("here") {
        _ = try await client.request(10, [])
        _ = try await client.request(10, [UInt8](repeating: 0, count: 990))
      }
      _ = try await Watcher.$context.withValue(long) { try await client.request(10, []) }
      #expect(seen.elements == [true, false, false])
    }
  }
}
