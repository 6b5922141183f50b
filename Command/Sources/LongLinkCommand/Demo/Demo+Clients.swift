// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import LongLink
import LongLinkCommandSupport
import LongLinkDemoMessages
import Synchronization

/// The steps with a client that renews its credential, and moves to other connections.
extension Demo {
  func showClients() async throws {
    try timeline.chapter("A secret that the server accepts for 3 s is renewed under a stream")
    let tokens = ["--token", "ann=a secret", "--token", "bob=another"]
    let port = try await startServer(port: 0, tokens + ["--credential-validity", "3"])
    let asked = Counter()
    let ann = try client(of: port) {
      asked.count.withLock { $0 += 1 }
      return Array("a secret".utf8)
    }
    let bob = try client(of: port) { Array("another".utf8) }
    do {
      try await showRenewal(ann, asked)
      try await showMoves(of: ann, watchedBy: bob)
    } catch {
      await ann.close()
      await bob.close()
      throw error
    }
    await ann.close()
    await bob.close()
    try process.send(SIGTERM)
  }

  /// How often something happened.
  private final class Counter: Sendable {
    let count = Mutex(0)
  }

  private func client(
    of port: UInt16, credential: @escaping @Sendable () -> [UInt8]
  ) throws -> LongLinkClient {
    var configuration = ClientConfiguration(servers: [.host("127.0.0.1", port: port)])
    configuration.logger.logLevel = .critical
    configuration.identity.credential = { credential() }
    return try LongLinkClient(configuration)
  }

  private func showRenewal(_ client: LongLinkClient, _ asked: Counter) async throws {
    try await client.connect()
    let begin = ContinuousClock.now
    let stream = client.stream(
      DemoRoutes.count, CountRequest(count: 34, intervalMilliseconds: 100))
    var count = 0
    for try await _ in stream { count += 1 }
    let took = ContinuousClock.now - begin
    try timeline.check(
      count == 34 && took > .seconds(3),
      "a stream of \(took.inSeconds) outlasted the secret: all \(count) items came",
      otherwise: "\(count) items within \(took.inSeconds)")
    let shown = asked.count.withLock { $0 }
    let connects = await client.counters().connects
    try timeline.check(
      shown >= 2 && connects == 1,
      "the client was asked for its secret \(shown) times, and has one connection as before",
      otherwise: "it was asked \(shown) times, and has connected \(connects) times")
  }

  private func showMoves(
    of client: LongLinkClient, watchedBy other: LongLinkClient
  ) async throws {
    try timeline.chapter("A client moves to other connections, and gets each broadcast once")
    let type: MessageType = 78
    let pushes = client.pushes(of: type)
    try await other.connect()
    let sent = Counter()
    for _ in 1...3 {
      // A stream that is under way stays on its connection, which the client keeps for it. What was
      // pushed there before comes before the second item.
      _ = try await client.exchange(DemoRoutes.relay, []) { items, writer in
        var items = items
        try await writer.write([1])
        _ = try await items.next()
        let connects = await client.counters().connects
        client.pathChanged()
        repeat {
          try await Demo.broadcast(50, of: type, after: sent, from: other)
        } while await client.counters().connects == connects
        try await writer.write([2])
        _ = try await items.next()
      }
      try timeline.tell("its network has changed: it has another connection, and a stream ends")
    }
    // What was pushed on this connection comes before the answer.
    _ = try await client.request(DemoRoutes.echo, [])
    var numbers: [UInt64] = []
    var rest = pushes
    while rest.buffered > 0, let push = await rest.next() {
      numbers.append(try Tick(copying: push.body).number)
    }
    let all = UInt64(sent.count.withLock { $0 })
    try timeline.check(
      numbers.sorted() == Array(1...all), "each of \(all) broadcasts came to it once",
      otherwise: "\(numbers)")
    let peers = try await other.request(DemoRoutes.peers, EmptyBody())
    let connects = await client.counters().connects
    try timeline.check(
      peers.clients == 2 && connects == 4,
      "to the server it is one client, after \(connects) connections", otherwise: "\(peers)")
  }

  /// Has the server push `count` numbers to both clients, all at once, so that some are on the way
  /// whenever a connection changes.
  private static func broadcast(
    _ count: Int, of type: MessageType, after sent: Counter, from client: LongLinkClient
  ) async throws {
    let first = sent.count.withLock { $0 } + 1
    let broadcasts = try (first..<first + count).map { number in
      client.submit(
        DemoRoutes.broadcast,
        BroadcastRequest(
          messageType: type.rawValue, body: try Tick(number: UInt64(number)).encodedBytes()))
    }
    for broadcast in broadcasts {
      let clients = try await broadcast.value.clients
      guard clients == 2 else { throw DemoFailure("a broadcast went to \(clients) clients of 2") }
      sent.count.withLock { $0 += 1 }
    }
  }
}
