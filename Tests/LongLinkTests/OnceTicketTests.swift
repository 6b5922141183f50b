// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkDriver
import LongLinkTesting
import LongLinkTransport
import Logging
import Testing

/// Requests that run once over short links, and those that an application repeats.
@Suite struct OnceTicketTests {
  private static let space = OnceTests.space

  @Test func `over short links, a refusal says the space, which the next request states`()
    async throws
  {
    try await Stage.simulate { stage, _ in
      let (server, client) = try await Self.shortPair(stage)
      server.on(1, [OnceTests.elsewhere(Self.space, 5_000), .reply([7])])
      #expect(try await client.request(1, [1], options: OnceTests.options) == [7])
      #expect(try await client.request(1, [1], options: OnceTests.options) == [7])
      let sent = try OnceTests.sent(to: server)
      #expect(sent.map(\.keySpace) == [[UInt8](repeating: 0, count: 16), Self.space, Self.space])
      #expect(sent[0].keyTime == 1 && sent[1].keyTime >= 5_000)
      #expect(sent[0].idempotencyKey == sent[1].idempotencyKey)
      await server.stop()
    }
  }

  @Test func `a short link that breaks before a space is known proves nothing, and costs nothing`()
    async throws
  {
    try await Stage.simulate { stage, _ in
      let (server, client) = try await Self.shortPair(stage)
      server.on(1, [.reset, OnceTests.elsewhere(Self.space, 5_000), .reply([7])])
      #expect(try await client.request(1, [1], options: OnceTests.options) == [7])
      // What may have run in a space is refused elsewhere, and not sent again.
      server.on(1, [.reset, OnceTests.elsewhere(OnceTests.otherSpace)])
      let error = try await failure {
        try await client.request(1, [1], options: OnceTests.options)
      }
      #expect(error.response == .preconditionFailed && error.delivery == .sent, "\(error)")
      await server.stop()
    }
  }

  static func shortPair(
    _ stage: Stage
  ) async throws -> (server: SimulatedServer, client: LongLinkClient) {
    let server = try await SimulatedServer.start(
      on: stage.serverLoop, at: .ipv4(127, 0, 0, 1, port: 0))
    server.handshake = .welcome(keySpace: space, keyTime: 5_000)
    let address = server.address
    let client = try stage.client(to: []) {
      $0 = ClientConfiguration(ways: [.simulatedShort(to: address)])
      $0.logger.logLevel = .critical
    }
    return (server, client)
  }

  @Test func `a ticket from before the first attempt repeats the request after a restart`()
    async throws
  {
    try await OnceTests.run { server, client, simulation in
      server.on(1, [.reset, .refuse(.draining), .reply([7], metadata: OnceTests.replay)])
      let ticket = try await client.ticket(key: [5])
      #expect(!ticket.mayHaveRun)
      let kept = try #require(ticket.bytes)
      let options = RequestOptions(retry: .ifSafe, ticket: ticket)
      let lost = try await failure { try await client.request(1, [1], options: options) }
      #expect(lost.delivery == .sent && ticket.mayHaveRun && !ticket.isReplayed)
      try await simulation.sleep(for: .seconds(60))

      let again = try #require(OnceTicket(bytes: kept))
      #expect(again.mayHaveRun && again.key == [5] && again.bytes == kept)
      let repeats = RequestOptions(retry: .once, ticket: again)
      #expect(try await client.request(1, [1], options: repeats) == [7])
      #expect(again.isReplayed)
      let sent = try OnceTests.sent(to: server)
      #expect(sent.count == 3 && Set(sent.map(\.keyTime)).count == 1)
      #expect(Set(sent.map(\.keySpace)) == [Self.space])
    }
  }

  @Test func `a repeated request that is refused may have run all the same`() async throws {
    try await OnceTests.run { server, client, _ in
      server.on(1, .refuse(.overloaded))
      let kept = try #require(try await client.ticket().bytes)
      let again = try #require(OnceTicket(bytes: kept))
      let never = RequestOptions(retry: .never, ticket: again)
      let error = try await failure { try await client.request(1, [1], options: never) }
      #expect(error.response == .overloaded && error.delivery == .sent, "\(error)")
      // The same of a fresh ticket did not run.
      let fresh = RequestOptions(retry: .never, ticket: try await client.ticket())
      let other = try await failure { try await client.request(1, [1], options: fresh) }
      #expect(other.delivery == .refused)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a repeated request that was never sent may have run all the same`(
    _ environment: TestEnvironment
  ) async throws {
    struct NotNow: Error {}
    let kept: [UInt8] = [1] + Self.space + [0, 0, 0, 0, 0, 0, 1, 2, 9]
    try await Stage.run(environment) { stage in
      let client = try stage.client(to: [.host("127.0.0.1", port: 1)]) {
        $0.interceptors = [{ if $0.type == 2 { throw NotNow() } }]
      }
      for ticket in [OnceTicket(bytes: kept), OnceTicket(key: [9])] {
        let ticket = try #require(ticket)
        let options = RequestOptions(retry: .once, ticket: ticket)
        let delivery = ticket.mayHaveRun ? Delivery.sent : .notSent
        // The task is cancelled before it makes the request.
        let gate = Latch()
        let task = stage.spawn {
          await gate.wait()
          return try await failure { try await client.request(1, [1], options: options) }
        }
        task.cancel()
        gate.open()
        let early = try await task.value
        #expect(early.code == .cancelled && early.delivery == delivery, "\(early)")
        // A request from another loop is cancelled before the client's loop gets it.
        let handle = await stage.serverLoop.run {
          let handle = client.submit(1, [1], options: options)
          handle.cancel()
          return handle
        }
        let distant = try await failure { try await handle.value }
        #expect(distant.code == .cancelled && distant.delivery == delivery, "\(distant)")
        let refused = try await failure { try await client.request(2, [1], options: options) }
        #expect(refused.delivery == delivery, "\(refused)")
        #expect(ticket.mayHaveRun == (delivery == .sent))
      }
    }
  }

  @Test func `a ticket is of one space, whatever the connection's server says`() async throws {
    try await OnceTests.run { server, client, _ in
      let elsewhere = OnceTests.elsewhere(OnceTests.otherSpace)
      server.on(1, [elsewhere, elsewhere, .reply([7])])
      let ticket = try await client.ticket()
      let options = RequestOptions(retry: .once, ticket: ticket)
      for _ in 0..<2 {
        let refused = try await failure { try await client.request(1, [1], options: options) }
        #expect(refused.response == .preconditionFailed && refused.delivery == .refused)
        #expect(refused.detail.contains("another store"), "\(refused)")
      }
      // The server may have learned a new name from its store meanwhile.
      #expect(try await client.request(1, [1], options: options) == [7])
      #expect(Set(try OnceTests.sent(to: server).map(\.keySpace)) == [Self.space])
      // A ticket that is made now is of the space that the refusals have told.
      let next = try await client.ticket()
      #expect(try #require(next.bytes)[1...16].elementsEqual(OnceTests.otherSpace))
    }
  }

  @Test func `a request with too long a key does not run on a connection that is prepared`()
    async throws
  {
    let errors = Tally<LongLinkError>()
    let configure = { @Sendable (configuration: inout ClientConfiguration) in
      configuration.prepare = { peer in
        let key = [UInt8](repeating: 1, count: 256)
        do {
          let options = RequestOptions(idempotencyKey: key, retry: .once)
          _ = try await peer.request(1, [1], options: options)
        } catch let error as LongLinkError {
          errors.add(error)
        }
      }
    }
    try await OnceTests.run(configure: configure) { server, client, _ in
      server.on(2, .reply())
      _ = try await client.request(2, [])
      #expect(errors.elements.map(\.code) == [.tooLarge])
      #expect(server.requests(of: 1).isEmpty)
    }
  }

  @Test func `requests run once on a connection that is prepared, also with a ticket`()
    async throws
  {
    let ticket = try #require(OnceTicket(key: [5]))
    let errors = Tally<LongLinkError>()
    let configure = { @Sendable (configuration: inout ClientConfiguration) in
      configuration.prepare = { peer in
        _ = try await peer.request(1, [1], options: OnceTests.options)
        do {
          let options = RequestOptions(ticket: ticket)
          #expect(try await peer.request(1, [2], options: options) == [7])
        } catch let error as LongLinkError {
          errors.add(error)
          throw error
        }
      }
    }
    try await OnceTests.run(configure: configure) { server, client, _ in
      // The connection ends before the answer to the ticket's request, and its next one is refused.
      server.on(1, [.reply(), .reset, .reply(), .refuse(.overloaded), .reply([7])])
      server.on(2, .reply())
      _ = try await client.request(2, [])
      #expect(errors.elements.map(\.code) == [.connectionLost, .rejected])
      #expect(errors.elements.map(\.delivery) == [.sent, .sent] && ticket.mayHaveRun)
      let sent = try OnceTests.sent(to: server)
      try #require(sent.count == 6)
      #expect(sent.allSatisfy { $0.keySpace == Self.space })
      #expect([1, 3, 5].allSatisfy { sent[$0].idempotencyKey == [5] })
      #expect(Set([1, 3, 5].map { sent[$0].keyTime }).count == 1)
      #expect(Set([0, 2, 4].map { sent[$0].idempotencyKey }).count == 3)
    }
  }

  @Test func `two requests with one ticket state the same`() async throws {
    try await OnceTests.run { server, client, simulation in
      server.on(1, .delay(.seconds(1), then: .reply([7])))
      let ticket = try #require(OnceTicket(key: [1]))
      let options = RequestOptions(ticket: ticket)
      let first = client.submit(1, [1], options: options)
      try await server.waitForRequest(of: 1)
      try await simulation.sleep(for: .milliseconds(100))
      _ = try await client.request(1, [1], options: options)
      _ = try await first.value
      let sent = try OnceTests.sent(to: server)
      #expect(sent.count == 2 && sent[0].keyTime == sent[1].keyTime)
    }
  }

  @Test func `no ticket can be had where no keys are kept`() async throws {
    try await OnceTests.run { server, client, _ in
      server.handshake = .normal
      let error = try await failure { try await client.ticket() }
      #expect(error.code == .unsupported, "\(error)")
    }
  }

  @Test func `bytes that are no ticket make none`() throws {
    #expect(OnceTicket(key: []) == nil && OnceTicket(key: [UInt8](repeating: 1, count: 256)) == nil)
    let head: [UInt8] = [1] + Self.space + [0, 0, 0, 0, 0, 0, 1, 2]
    #expect(OnceTicket(bytes: head + [9])?.key == [9])
    let zeros = [UInt8](repeating: 0, count: 16)
    let wrong: [[UInt8]] = [
      [], head, [2] + head.dropFirst() + [9], head + [UInt8](repeating: 1, count: 256),
      [1] + Self.space + zeros.prefix(8) + [9], [1] + zeros + head.suffix(8) + [9],
    ]
    for bytes in wrong { #expect(OnceTicket(bytes: bytes) == nil, "\(bytes)") }
  }
}
