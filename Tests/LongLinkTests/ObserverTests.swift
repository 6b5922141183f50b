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
  /// What an ended exchange was, without its times.
  private struct Exchange: Equatable, Sendable {
    var type: MessageType
    var ending: ExchangeEnding?
    var delivery: Delivery
    var attempts = 1
    var sent = 0
    var got = 0
  }

  private struct Ended: Sendable {
    let number: UInt32
    let isShort: Bool
    let wasOpened: Bool
    let reason: CloseReason?
    let underWay: [Int]
    let principal: String?
  }

  /// Keeps what it hears, and checks the order of the calls about each record.
  private final class Watcher: Observer {
    @TaskLocal static var context = "none"

    private struct State {
      var open: [ObjectIdentifier: String] = [:]
      var ended: [ExchangeRecord.Direction: [Exchange]] = [:]
      var links: [Ended] = []
      var openLinks: Set<ObjectIdentifier> = []
      var faults: [String] = []
    }

    let name: String
    private let state = Mutex(State())

    init(_ name: String) {
      self.name = name
    }

    var ended: [Exchange] { state.withLock { $0.ended[.outbound] ?? [] } }
    var handled: [Exchange] { state.withLock { $0.ended[.inbound] ?? [] } }
    var links: [Ended] { state.withLock { $0.links } }
    var openCount: Int { state.withLock { $0.open.count + $0.openLinks.count } }
    var faults: [String] { state.withLock { $0.faults } }

    private func began(_ exchange: ExchangeRecord) {
      state.withLock { state in
        if state.open.updateValue("began", forKey: ObjectIdentifier(exchange)) != nil {
          state.faults.append("began twice")
        }
      }
    }

    func begins(_ exchange: ExchangeRecord, metadata: inout [String: String]) {
      began(exchange)
      exchange.attach(Watcher.context)
      metadata["context"] = Watcher.context
    }

    func arrived(_ exchange: ExchangeRecord, metadata: [String: String]) {
      began(exchange)
      exchange.attach(metadata["context"] ?? "nothing")
    }

    func handedOver(_ exchange: ExchangeRecord) {
      state.withLock { state in
        if state.open.updateValue("handed over", forKey: ObjectIdentifier(exchange)) == nil {
          state.faults.append("handed over outside of its exchange")
        }
      }
    }

    func ended(_ exchange: ExchangeRecord) {
      state.withLock { state in
        let last = state.open.removeValue(forKey: ObjectIdentifier(exchange))
        if last == nil { state.faults.append("ended outside of its exchange") }
        if (last == "handed over") != (exchange.handedOver != nil) {
          state.faults.append("handed over unheard")
        }
        let times = [exchange.began, exchange.handedOver, exchange.ended].compactMap { $0 }
        if times != times.sorted() { state.faults.append("times out of order") }
        if exchange.attempts > 0, exchange.link == nil || exchange.serial == 0 {
          state.faults.append("no link")
        }
        state.ended[exchange.direction, default: []].append(
          Exchange(
            type: exchange.type, ending: exchange.ending, delivery: exchange.delivery,
            attempts: exchange.attempts, sent: exchange.requestBytes, got: exchange.responseBytes))
      }
    }

    func withScope(
      of exchange: ExchangeRecord, _ handler: () throws -> AnyBody
    ) throws -> AnyBody {
      try Watcher.$context.withValue(context(of: exchange)) { try handler() }
    }

    func withScope(
      of exchange: ExchangeRecord, _ handler: () async throws -> AnyBody
    ) async throws -> AnyBody {
      try await Watcher.$context.withValue(context(of: exchange)) { try await handler() }
    }

    private func context(of exchange: ExchangeRecord) -> String {
      "\(exchange.attachment(of: String.self) ?? "none") by \(name)"
    }

    func began(_ link: LinkRecord) {
      state.withLock { _ = $0.openLinks.insert(ObjectIdentifier(link)) }
    }

    func opened(_ link: LinkRecord) {
      state.withLock { state in
        if link.opened == nil || !state.openLinks.contains(ObjectIdentifier(link)) {
          state.faults.append("opened outside of its link")
        }
      }
    }

    func ended(_ link: LinkRecord) {
      state.withLock { state in
        if state.openLinks.remove(ObjectIdentifier(link)) == nil {
          state.faults.append("ended outside of its link")
        }
        state.links.append(
          Ended(
            number: link.number, isShort: link.isShort, wasOpened: link.opened != nil,
            reason: link.reason, underWay: [link.underWay.outbound, link.underWay.inbound],
            principal: link.principal?.name))
      }
    }
  }

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
        Exchange(type: .echo, ending: .answered(.ok), delivery: .answered, sent: 3, got: 3),
        Exchange(type: 10, ending: .answered(.ok), delivery: .answered, sent: 1, got: 1),
        Exchange(type: 10, ending: .answered(.ok), delivery: .answered, sent: 2, got: 2),
        Exchange(type: 11, ending: .answered(.ok), delivery: .answered, got: 1),
      ]
      #expect(mine.ended == expected)
      #expect(others.handled == expected)
    }
  }

  @Test func `each refusal and rejection is recorded with its code, the core's too`() async throws {
    try await observe {
      $0.maxInFlight = 1
    } routes: {
      $0.route(10, requires: .authenticated) { $0.body }
    } _: { stage, _, client, mine, others in
      _ = try await failure { try await client.request(.fail, []) }
      _ = try await failure { try await client.request(10, []) }
      _ = try await failure { try await client.request(99, []) }
      let expected = [
        Exchange(type: .fail, ending: .answered(1_234), delivery: .answered, got: 3),
        Exchange(type: 10, ending: .refused(.forbidden), delivery: .refused),
        Exchange(type: 99, ending: .refused(.unknownType), delivery: .refused),
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
        $0.maxInFlight = 1
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
      let options = RequestOptions(offline: .failUnlessConnecting)
      _ = try await failure { try await client.request(.echo, [], options: options) }
      await client.close()
      _ = try await failure { try await client.request(.echo, []) }
      let early = stage.spawn { try await client.request(.echo, []) }
      early.cancel()
      _ = await early.result
      #expect(mine.ended.map(\.attempts) == [0, 0, 0])
      #expect(mine.ended.map(\.delivery) == [.notSent, .notSent, .notSent])
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
      $0.maxBody = 1_000; $0.maxRequestBytes = 1_000
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
