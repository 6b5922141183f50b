// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkTesting
import Synchronization
import Testing

/// Requests that run once, from the client's side: the server's answers are scripted.
@Suite struct OnceTests {
  static let space = [UInt8](1...16)
  static let otherSpace = [UInt8](101...116)
  static let options = RequestOptions(retry: .once)
  static let replay = WireMetadata(replayed: true)

  /// What a refusal says of the space and time.
  static func elsewhere(_ space: [UInt8], _ time: UInt64 = 90_000) -> ServerAction {
    .refuse(
      .preconditionFailed, "elsewhere", metadata: WireMetadata(keySpace: space, keyTime: time))
  }

  /// Runs a body with a scripted server that keeps keys, and a client of it that reconnects soon.
  static func run(
    configure: @escaping @Sendable (inout ClientConfiguration) -> Void = { _ in },
    _ body:
      @escaping @Sendable (SimulatedServer, LongLinkClient, Simulation) async throws -> Void
  ) async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await SimulatedServer.start(
        on: stage.serverLoop, at: .ipv4(127, 0, 0, 1, port: 0))
      server.handshake = .welcome(keySpace: space, keyTime: 5_000)
      let client = try stage.client(to: [server.endpoint]) {
        $0.reconnect.afterClose = .milliseconds(5)
        $0.reconnect.cap = .seconds(1)
        configure(&$0)
      }
      try await body(server, client, simulation)
      await server.stop()
    }
  }

  /// The metadata of the requests of type 1, in the order of their arrival.
  static func sent(to server: SimulatedServer) throws -> [WireMetadata] {
    try server.requests(of: 1).map { try #require($0.metadata) }
  }

  @Test func `a request that was lost is sent again as it was, where the space is the same`()
    async throws
  {
    try await Self.run { server, client, simulation in
      server.on(1, [.delay(.seconds(2), then: .reset), .reply([7], metadata: Self.replay)])
      let ticket = try #require(OnceTicket(key: [9, 9]))
      let reply = try await client.request(
        1, [1], options: RequestOptions(retry: .once, ticket: ticket))
      #expect(reply == [7] && ticket.isReplayed && ticket.mayHaveRun)
      let sent = try Self.sent(to: server)
      #expect(sent.count == 2)
      #expect(sent.map(\.idempotencyKey) == [[9, 9], [9, 9]])
      #expect(sent.map(\.keySpace) == [Self.space, Self.space])
      #expect(sent[0].keyTime == sent[1].keyTime && sent[0].keyTime >= 5_000)
      #expect(server.requests(of: 1).map(\.body) == [[1], [1]])
      #expect(await client.counters().requests.retriedIdempotent == 1)
    }
  }

  @Test func `without a key of its own a request gets a random one, and no two the same`()
    async throws
  {
    try await Self.run { server, client, _ in
      server.on(1, .reply())
      for _ in 0..<2 { _ = try await client.request(1, [1], options: Self.options) }
      let keys = try Self.sent(to: server).map(\.idempotencyKey)
      #expect(keys.map(\.count) == [16, 16] && keys[0] != keys[1])
    }
  }

  @Test func `the client counts on from the store's clock, and adds what else a request says`()
    async throws
  {
    try await Self.run { server, client, simulation in
      server.on(1, .reply())
      try await client.connect()
      let options = RequestOptions(
        priority: 3, idempotencyKey: [8], metadata: ["a": "b"], retry: .once)
      _ = try await client.request(1, [1], options: options)
      try await simulation.sleep(for: .seconds(3))
      _ = try await client.request(1, [1], options: options)
      let sent = try Self.sent(to: server)
      #expect((8_000...8_050).contains(sent[1].keyTime), "\(sent[1].keyTime)")
      #expect(sent[1].priority == 3 && sent[1].entries == ["a": "b"])
      #expect(sent[1].idempotencyKey == [8] && sent[1].keySpace == Self.space)
      #expect(try #require(sent[1].remaining) > .seconds(14))
    }
  }

  @Test func `where no keys are kept a request is not sent`() async throws {
    try await Self.run { server, client, _ in
      server.handshake = .normal
      server.on(1, .reply())
      let error = try await failure { try await client.request(1, [1], options: Self.options) }
      #expect(error.code == .unsupported && error.delivery == .notSent)
      #expect(error.detail.contains("keeps no records"), "\(error)")
      #expect(server.requests(of: 1).isEmpty)
    }
  }

  @Test func `a request that may have run states the same everywhere`() async throws {
    try await Self.run { server, client, _ in
      server.on(1) { [server] _ in
        guard server.requests(of: 1).count == 1 else { return Self.elsewhere(Self.otherSpace) }
        server.handshake = .welcome(keySpace: Self.otherSpace)
        return .reset
      }
      let error = try await failure { try await client.request(1, [1], options: Self.options) }
      #expect(error.response == .preconditionFailed && error.delivery == .sent)
      #expect(error.detail.contains("kept elsewhere"), "\(error)")
      #expect(server.connectionsAccepted == 2)
      let sent = try Self.sent(to: server)
      #expect(sent.map(\.keySpace) == [Self.space, Self.space])
      #expect(Set(sent.map(\.keyTime)).count == 1)
    }
  }

  @Test func `where the server of the next connection keeps no answers, it is not sent again`()
    async throws
  {
    try await Self.run { server, client, _ in
      server.on(1) { [server] _ in
        server.handshake = .normal
        return .reset
      }
      let error = try await failure { try await client.request(1, [1], options: Self.options) }
      #expect(error.code == .unsupported && error.delivery == .sent, "\(error)")
      #expect(server.requests(of: 1).count == 1 && server.connectionsAccepted == 2)
    }
  }

  @Test func `a request that has not run is sent again with what holds there`() async throws {
    try await Self.run { server, client, _ in
      server.on(1) { [server] _ in
        guard server.requests(of: 1).count == 1 else { return .reply([7]) }
        server.handshake = .welcome(keySpace: Self.otherSpace, keyTime: 70_000)
        return .sequence([.refuse(.draining), .goAway()])
      }
      #expect(try await client.request(1, [1], options: Self.options) == [7])
      let sent = try Self.sent(to: server)
      #expect(sent.map(\.keySpace) == [Self.space, Self.otherSpace])
      #expect(sent[1].keyTime >= 70_000 && sent[0].idempotencyKey == sent[1].idempotencyKey)
    }
  }

  @Test func `what a refusal says of the space and time is taken over, three times`() async throws {
    try await Self.run { server, client, _ in
      server.on(1, [Self.elsewhere(Self.otherSpace), .reply([7])])
      #expect(try await client.request(1, [1], options: Self.options) == [7])
      // So do later requests of the same connection.
      #expect(try await client.request(1, [1], options: Self.options) == [7])
      let sent = try Self.sent(to: server)
      #expect(sent.map(\.keySpace) == [Self.space, Self.otherSpace, Self.otherSpace])
      #expect(sent[1].keyTime >= 90_000 && sent[2].keyTime >= sent[1].keyTime)

      server.on(2, Self.elsewhere(Self.space))
      let error = try await failure { try await client.request(2, [1], options: Self.options) }
      #expect(error.response == .preconditionFailed && error.delivery == .refused)
      #expect(server.requests(of: 2).count == 4)
    }
  }

  /// What the server says after a first attempt that was lost, and how the request ends.
  struct Ending: Sendable {
    var answer: ServerAction
    var delivery: Delivery
    var says: String
  }

  static let endings = [
    Ending(answer: elsewhere(otherSpace), delivery: .sent, says: "may have run"),
    Ending(answer: .refuse(.conflict), delivery: .sent, says: "may have run"),
    Ending(
      answer: .reply(code: .gone, metadata: WireMetadata(interrupted: true, replayed: true)),
      delivery: .sent, says: "has run, or may have"),
    // The handler's own.
    Ending(answer: .reply(code: .gone, metadata: replay), delivery: .answered, says: ""),
    Ending(answer: .reply(code: .gone), delivery: .answered, says: ""),
    Ending(answer: .reply(code: .deadlinePassed), delivery: .sent, says: ""),
    Ending(
      answer: .reply(code: .deadlinePassed, metadata: replay), delivery: .answered, says: ""),
    Ending(answer: .reply(code: 1_000, metadata: replay), delivery: .answered, says: ""),
  ]

  @Test(arguments: endings.indices)
  func `the end after a lost attempt says what is known`(_ index: Int) async throws {
    let ending = Self.endings[index]
    try await Self.run { server, client, _ in
      server.on(1, [.reset, ending.answer])
      let error = try await failure { try await client.request(1, [1], options: Self.options) }
      #expect(error.code == .rejected && error.delivery == ending.delivery, "\(error)")
      #expect(ending.says.isEmpty || error.detail.contains(ending.says), "\(error)")
      #expect(server.requests(of: 1).count == 2)
    }
  }

  @Test func `an ordered request is not sent again once it may have run`() async throws {
    try await Self.run { server, client, _ in
      server.on(1, .reset)
      let options = RequestOptions(retry: .once, isOrdered: true)
      let tasks = (0..<2).map { _ in client.submit(1, [1], options: options) }
      for task in tasks {
        let error = try await failure { try await task.value }
        #expect(error.delivery == .sent, "\(error)")
      }
      #expect(server.requests(of: 1).count <= 2)
    }
  }

  @Test func `a key that is too long fails before it is sent`() async throws {
    try await Self.run { server, client, _ in
      let long = RequestOptions(idempotencyKey: [UInt8](repeating: 1, count: 256), retry: .once)
      let error = try await failure { try await client.request(1, [1], options: long) }
      #expect(error.code == .tooLarge && error.delivery == .notSent, "\(error)")
      #expect(server.requests(of: 1).isEmpty)
    }
  }
}
