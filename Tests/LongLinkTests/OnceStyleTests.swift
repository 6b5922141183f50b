// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCore
import LongLinkDemoMessages
import LongLinkTesting
import LongLinkTransport
import Testing

/// Requests that run once, in each style of call. The first answer is lost, and the caller of each
/// style gets that of the record.
@Suite struct OnceStyleTests {
  /// How a call is made: with bytes, or with Protocol Buffers messages of a method.
  enum Style: CaseIterable {
    case awaited
    case submitted
    case withCompletion
    case messageAwaited
    case messageSubmitted
    case messageWithCompletion
  }

  private static let method = RPCMethod<Tick, Tick>(1, "Tick")
  private static let request = Tick(number: 1)
  private static let reply = Tick(number: 3)

  /// Makes a request in one style, and returns the reply.
  private static func call(
    _ style: Style, _ client: LongLinkClient, _ options: RequestOptions
  ) async throws -> Tick {
    let body = try request.encodedBytes()
    switch style {
    case .awaited: return try Tick(copying: try await client.request(1, body, options: options))
    case .submitted:
      return try Tick(copying: try await client.submit(1, body, options: options).value)
    case .withCompletion:
      let results = Tally<Result<[UInt8], LongLinkError>>()
      client.request(1, body, options: options, on: .connectionLoop) { results.add($0) }
      await results.reached(1)
      return try Tick(copying: try results.elements[0].get())
    case .messageAwaited: return try await client.request(method, request, options: options)
    case .messageSubmitted: return try await client.submit(method, request, options: options).value
    case .messageWithCompletion:
      let results = Tally<Result<Tick, LongLinkError>>()
      client.request(method, request, options: options, on: .connectionLoop) { results.add($0) }
      await results.reached(1)
      return try results.elements[0].get()
    }
  }

  /// Expects that the request was sent twice, as the same one.
  private static func expectRepeated(_ server: SimulatedServer, _ ticket: OnceTicket) throws {
    let sent = try OnceTests.sent(to: server).suffix(2)
    #expect(sent.map(\.idempotencyKey) == [ticket.key, ticket.key])
    #expect(sent.map(\.keySpace) == [OnceTests.space, OnceTests.space])
    #expect(Set(sent.map(\.keyTime)).count == 1)
    #expect(try server.requests(of: 1).allSatisfy { try $0.body == request.encodedBytes() })
    #expect(ticket.isReplayed && ticket.mayHaveRun)
  }

  /// Without a ticket nothing tells of the replay, and all else is the same.
  @Test(arguments: Style.allCases, [true, false])
  func `each style gets the answer of the record`(_ style: Style, _ hasTicket: Bool)
    async throws
  {
    let answer = try Self.reply.encodedBytes()
    try await OnceTests.run { server, client, _ in
      server.on(1, [.reset, .reply(answer, metadata: OnceTests.replay)])
      let ticket = try #require(OnceTicket(key: [9]))
      let options =
        hasTicket
        ? RequestOptions(ticket: ticket) : RequestOptions(idempotencyKey: [9], retry: .once)
      #expect(try await Self.call(style, client, options) == Self.reply)
      if hasTicket { try Self.expectRepeated(server, ticket) }
      #expect(try OnceTests.sent(to: server).map(\.idempotencyKey) == [[9], [9]])
    }
  }

  @Test(arguments: Style.allCases)
  func `each style gets it over short links`(_ style: Style) async throws {
    let answer = try Self.reply.encodedBytes()
    try await Stage.simulate { stage, _ in
      let (server, client) = try await OnceTicketTests.shortPair(stage)
      server.on(
        1,
        [
          OnceTests.elsewhere(OnceTests.space, 5_000), .reset,
          .reply(answer, metadata: OnceTests.replay),
        ])
      let ticket = try #require(OnceTicket(key: [9]))
      let reply = try await Self.call(style, client, RequestOptions(ticket: ticket))
      #expect(reply == Self.reply && server.requests(of: 1).count == 3)
      try Self.expectRepeated(server, ticket)
      await server.stop()
    }
  }

  @Test(arguments: [true, false])
  func `a plain thread gets it`(_ isTyped: Bool) async throws {
    let answer = try Self.reply.encodedBytes()
    try await Stage.run(.loopback) { stage in
      let server = try await SimulatedServer.start(on: stage.serverLoop)
      server.handshake = .welcome(keySpace: OnceTests.space, keyTime: 5_000)
      server.on(1, [.reset, .reply(answer, metadata: OnceTests.replay)])
      let client = try stage.client(to: [server.endpoint]) {
        $0.reconnect.afterClose = .milliseconds(5)
      }
      let ticket = try #require(OnceTicket(key: [9]))
      let options = RequestOptions(ticket: ticket)
      let replies = Tally<Tick?>()
      let body = try Self.request.encodedBytes()
      PlainThread.run {
        if isTyped {
          replies.add(try? client.requestBlocking(Self.method, Self.request, options: options))
        } else {
          let bytes = try? client.requestBlocking(1, body, options: options)
          replies.add(try? bytes.map { try Tick(copying: $0) })
        }
      }
      await replies.reached(1)
      #expect(replies.elements == [Self.reply])
      try Self.expectRepeated(server, ticket)
      await client.close()
      await server.stop()
    }
  }

  @Test(arguments: Style.allCases)
  func `a dialect has no requests that run once, in any style`(_ style: Style) async throws {
    try await Stage.simulate { stage, _ in
      let (server, client) = try await stage.scripted(.bare)
      let ticket = try #require(OnceTicket(key: [9]))
      for options in [RequestOptions(retry: .once), RequestOptions(ticket: ticket)] {
        let error = try await failure { try await Self.call(style, client, options) }
        #expect(error.code == .unsupported && error.delivery == .notSent, "\(error)")
        #expect(error.detail == "the dialect has no requests that run once", "\(error)")
      }
      #expect(server.requests(of: 1).isEmpty)
      await server.stop()
    }
  }
}
