// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkDemoMessages
import LongLinkProtobufC
import LongLinkServer
import LongLinkTesting
import Testing

/// One-way messages, and requests of the server.
@Suite struct PushTests {
  /// A server that hands out its connections.
  private func serve(
    _ stage: Stage,
    _ peers: Tally<Peer>,
    configure: (inout ServerConfiguration) -> Void = { _ in }
  ) async throws -> LongLinkServer {
    try await stage.serve(
      setUp: { server in
        server.routeBasics()
        server.onConnect { peers.add($0) }
      },
      configure: configure
    )
  }

  @Test(arguments: TestEnvironment.allCases)
  func `pushes come by type, all together, and to a handler`(_ environment: TestEnvironment)
    async throws
  {
    try await Stage.run(environment) { stage in
      let peers = Tally<Peer>()
      let client = try stage.client(of: try await serve(stage, peers))
      var sevens = client.pushes(of: 7).makeAsyncIterator()
      var all = client.pushes().makeAsyncIterator()
      let handled = Tally<(UInt8, Bool)>()
      client.onPush(8) { handled.add(($0.body[0], client.loop.isCurrent)) }
      try await client.connect()
      await peers.reached(1)
      for (type, number): (MessageType, UInt8) in [(7, 1), (8, 2), (7, 3), (9, 4)] {
        try await peers.elements[0].push(type, [number])
      }
      #expect(await sevens.next() == Push(type: 7, body: [1]))
      #expect(await sevens.next() == Push(type: 7, body: [3]))
      for number: UInt8 in 1...4 { #expect(await all.next()?.body == [number]) }
      await handled.reached(1)
      #expect(handled.elements[0] == (2, true))
      #expect(await client.counters().connections.pushesReceived == 4)
      await client.close()
      #expect(await sevens.next() == nil)
      #expect(await all.next() == nil)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a push without a subscriber is counted`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let peers = Tally<Peer>()
      let client = try stage.client(of: try await serve(stage, peers))
      try await client.connect()
      await peers.reached(1)
      try await peers.elements[0].push(7, [1])
      try await stage.until { await client.counters().pushesUnhandled == 1 }
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a consumer that falls behind loses what was agreed`(_ environment: TestEnvironment)
    async throws
  {
    try await Stage.run(environment) { stage in
      let peers = Tally<Peer>()
      let client = try stage.client(of: try await serve(stage, peers))
      let oldest = client.pushes(of: 7, buffer: .dropOldest(3))
      let newest = client.pushes(of: 7, buffer: .dropNewest(3))
      try await client.connect()
      await peers.reached(1)
      for number: UInt8 in 1...10 { try await peers.elements[0].push(7, [number]) }
      try await stage.until { await client.counters().connections.pushesReceived == 10 }
      #expect(await client.counters().pushesDropped == 14)
      await client.close()
      var bodies: [UInt8] = []
      for await push in oldest { bodies += push.body }
      #expect(bodies == [8, 9, 10])
      bodies = []
      for await push in newest { bodies += push.body }
      #expect(bodies == [1, 2, 3])
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a sequence continues across a reconnect`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let peers = Tally<Peer>()
      let client = try stage.client(of: try await serve(stage, peers)) {
        $0.reconnect.afterClose = .milliseconds(5)
        $0.reconnect.afterRefused = .milliseconds(5)
      }
      var pushes = client.pushes().makeAsyncIterator()
      try await client.connect()
      for number: UInt8 in 1...3 {
        await peers.reached(Int(number))
        let peer = peers.elements[Int(number) - 1]
        try await peer.push(7, [number])
        #expect(await pushes.next()?.body == [number])
        peer.close()
      }
      await peers.reached(4)
      try await stage.until { if case .connected = client.state { true } else { false } }
      #expect(await client.counters().connects == 4)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a client's push reaches the server's handler`(_ environment: TestEnvironment) async throws {
    let received = Tally<(Push, UInt64)>()
    try await Stage.serving(in: environment) { server in
      server.onPush(7) { push, peer in received.add((push, peer.id)) }
    } _: { _, server, client in
      let early = try await failure { try await client.push(7, [0]) }
      #expect(early.code == .notConnected)
      try await client.connect()
      try await client.push(7, [1])
      try await client.push(8, [2])
      try await client.push(7, Tick(number: 3))
      await received.reached(2)
      #expect(received.elements[0].0 == Push(type: 7, body: [1]))
      #expect(try Tick(copying: received.elements[1].0.body) == Tick(number: 3))
      #expect(await server.counters().pushesUnhandled == 1)
      await client.close()
      let late = try await failure { try await client.push(7, [0]) }
      #expect(late.code == .closed)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a push that is too large is not sent`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let peers = Tally<Peer>()
      let server = try await serve(stage, peers) { $0.limits.maxBody = 100 }
      let client = try stage.client(of: server) { $0.limits.maxBody = 200 }
      try await client.connect()
      await peers.reached(1)
      let up = try await failure { try await client.push(7, [UInt8](repeating: 0, count: 101)) }
      #expect(up.code == .tooLarge)
      let down = try await failure {
        try await peers.elements[0].push(7, [UInt8](repeating: 0, count: 201))
      }
      #expect(down.code == .tooLarge)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `the server asks and the client answers`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let peers = Tally<Peer>()
      let server = try await serve(stage, peers)
      let client = try stage.client(of: server)
      client.onRequest(20) { request in request.body + [0] }
      client.onRequest(21) { _ in throw Rejection(4_000, body: [4]) }
      try await client.connect()
      await peers.reached(1)
      let peer = peers.elements[0]
      #expect(try await peer.request(20, [1, 2]) == [1, 2, 0])
      let rejected = try await failure { try await peer.request(21, [1]) }
      #expect(rejected.response == 4_000 && rejected.body == [4])
      #expect(rejected.delivery == .answered)
      let refused = try await failure { try await peer.request(22, [1]) }
      #expect(refused.response == .unknownType && refused.delivery == .refused)
      let counters = await server.counters().requests
      #expect(counters.submitted == 3 && counters.succeeded == 1 && counters.rejected == 2)
      #expect(await client.counters().connections.requestsReceived == 3)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `both sides ask at once`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let peers = Tally<Peer>()
      let client = try stage.client(of: try await serve(stage, peers))
      client.onRequest(20) { request in request.body }
      try await client.connect()
      await peers.reached(1)
      let peer = peers.elements[0]
      try await withThrowingTaskGroup(of: Bool.self) { group in
        for number: UInt8 in 0..<50 {
          group.addTask { try await client.request(.echo, [number]) == [number] }
          group.addTask { try await peer.request(20, [number]) == [number] }
        }
        for try await isRight in group { #expect(isRight) }
      }
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `the server's request ends with its connection`(_ environment: TestEnvironment) async throws
  {
    try await Stage.run(environment) { stage in
      let peers = Tally<Peer>()
      let cancelled = Latch()
      let server = try await serve(stage, peers)
      let client = try stage.client(of: server)
      let began = Latch()
      client.onRequest(20) { request in
        began.open()
        do {
          try await request.clock.sleep(for: .seconds(1_000_000))
        } catch {
          cancelled.open()
          throw error
        }
        return request.body
      }
      try await client.connect()
      await peers.reached(1)
      let peer = peers.elements[0]
      let asking = stage.spawn { try await failure { try await peer.request(20, [1]) } }
      await began.wait()
      await client.close()
      let error = try await asking.value
      #expect(error.code == .connectionLost)
      #expect(error.delivery == .sent)
      await cancelled.wait()
      let late = try await failure { try await peer.request(20, [1]) }
      #expect(late.code == .closed)
      #expect(late.delivery == .notSent)
      let push = try await failure { try await peer.push(20, [1]) }
      #expect(push.code == .closed)
      #expect(await server.counters().requests.lost == 1)
    }
  }

  @Test(arguments: TestEnvironment.allCases, [100, 300_000])
  func `a broadcast reaches every connection`(_ environment: TestEnvironment, _ size: Int)
    async throws
  {
    try await Stage.run(environment) { stage in
      let peers = Tally<Peer>()
      let server = try await serve(stage, peers)
      let clients = try (0..<5).map { _ in try stage.client(of: server) }
      var streams: [BufferedSequence<Push, Never>] = []
      for client in clients {
        streams.append(client.pushes().makeAsyncIterator())
        try await client.connect()
      }
      await peers.reached(5)
      let body = CountingBody(count: size)
      let report = try await server.broadcast(7, body)
      #expect(report.queued == 5 && report.skipped == 0 && report.dropped == 0)
      for index in streams.indices {
        let push = await streams[index].next()
        #expect(push?.type == 7)
        #expect(push?.body == body.bytes)
      }
      #expect(body.encodings.count == 1)
      #expect(await server.counters().connections.pushesSent == 5)
    }
  }

  @Test func `a broadcast skips connections that accept less`() async throws {
    try await Stage.simulate { stage, simulation in
      let peers = Tally<Peer>()
      let server = try await serve(stage, peers)
      let small = try stage.client(of: server) { $0.limits.maxBody = 10 }
      let large = try stage.client(of: server)
      try await small.connect()
      try await large.connect()
      let report = try await server.broadcast(7, [UInt8](repeating: 0, count: 11))
      #expect(report.queued == 1 && report.tooLarge == 1)
      #expect(await server.counters().connections.broadcastsSkipped == 1)
      try await simulation.sleep(for: .seconds(1))
      #expect(await small.counters().connections.pushesReceived == 0)
      #expect(await large.counters().connections.pushesReceived == 1)
      #expect(await small.counters().connects == 1)
    }
  }
}

/// A body that counts how often it is encoded.
private struct CountingBody: BodyEncodable, Sendable {
  let bytes: [UInt8]
  let encodings = Tally<Void>()

  init(count: Int) {
    bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
  }

  var encodedByteCount: Int { bytes.count }

  func encode(into output: inout OutputRawSpan) {
    encodings.add(())
    bytes.encode(into: &output)
  }
}
