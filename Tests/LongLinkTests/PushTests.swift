// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkDemoMessages
import LongLinkProtobufC
import LongLinkServer
import LongLinkTesting
import Testing

/// One-way messages, and requests of the server.
@Suite struct PushTests {
  /// A server that hands out its sessions.
  private func serve(
    _ stage: Stage,
    _ sessions: Tally<PeerSession>,
    configure: (inout ServerConfiguration) -> Void = { _ in }
  ) async throws -> LongLinkServer {
    try await stage.serve(
      setUp: { server in
        server.routeBasics()
        server.onSessionOpen { sessions.add($0) }
      },
      configure: configure
    )
  }

  @Test(arguments: World.allCases)
  func `pushes come by type, all together, and to a handler`(_ world: World) async throws {
    try await Stage.run(world) { stage in
      let sessions = Tally<PeerSession>()
      let client = try stage.client(of: try await serve(stage, sessions))
      var sevens = client.pushes(of: 7).makeAsyncIterator()
      var all = client.pushes().makeAsyncIterator()
      let handled = Tally<(UInt8, Bool)>()
      client.onPush(8) { handled.add(($0.body[0], client.loop.isCurrent)) }
      try await client.connect()
      await sessions.reached(1)
      for (type, number): (MessageType, UInt8) in [(7, 1), (8, 2), (7, 3), (9, 4)] {
        try await sessions.elements[0].push(type, [number])
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

  @Test(arguments: World.allCases)
  func `a push that nobody wants is counted`(_ world: World) async throws {
    try await Stage.run(world) { stage in
      let sessions = Tally<PeerSession>()
      let client = try stage.client(of: try await serve(stage, sessions))
      try await client.connect()
      await sessions.reached(1)
      try await sessions.elements[0].push(7, [1])
      try await stage.until { await client.counters().pushesUnhandled == 1 }
    }
  }

  @Test(arguments: World.allCases)
  func `a consumer that falls behind loses what was agreed`(_ world: World) async throws {
    try await Stage.run(world) { stage in
      let sessions = Tally<PeerSession>()
      let client = try stage.client(of: try await serve(stage, sessions))
      let oldest = client.pushes(of: 7, buffer: .dropOldest(3))
      let newest = client.pushes(of: 7, buffer: .dropNewest(3))
      try await client.connect()
      await sessions.reached(1)
      for number: UInt8 in 1...10 { try await sessions.elements[0].push(7, [number]) }
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

  @Test(arguments: World.allCases)
  func `a sequence goes on over a reconnect`(_ world: World) async throws {
    try await Stage.run(world) { stage in
      let sessions = Tally<PeerSession>()
      let client = try stage.client(of: try await serve(stage, sessions)) {
        $0.reconnect.afterClose = .milliseconds(5)
        $0.reconnect.afterRefused = .milliseconds(5)
      }
      var pushes = client.pushes().makeAsyncIterator()
      try await client.connect()
      for number: UInt8 in 1...3 {
        await sessions.reached(Int(number))
        let session = sessions.elements[Int(number) - 1]
        try await session.push(7, [number])
        #expect(await pushes.next()?.body == [number])
        session.close()
      }
      await sessions.reached(4)
      try await stage.until { if case .connected = client.state { true } else { false } }
      #expect(await client.counters().connects == 4)
    }
  }

  @Test(arguments: World.allCases)
  func `a client's push reaches the server's handler`(_ world: World) async throws {
    try await Stage.run(world) { stage in
      let received = Tally<(Push, UInt64)>()
      let server = try await stage.serve { server in
        server.onPush(7) { push, session in received.add((push, session.id)) }
      }
      let client = try stage.client(of: server)
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

  @Test(arguments: World.allCases)
  func `a push that is too large is not sent`(_ world: World) async throws {
    try await Stage.run(world) { stage in
      let sessions = Tally<PeerSession>()
      let server = try await serve(stage, sessions) { $0.maxBody = 100 }
      let client = try stage.client(of: server) { $0.maxBody = 200 }
      try await client.connect()
      await sessions.reached(1)
      let up = try await failure { try await client.push(7, [UInt8](repeating: 0, count: 101)) }
      #expect(up.code == .tooLarge)
      let down = try await failure {
        try await sessions.elements[0].push(7, [UInt8](repeating: 0, count: 201))
      }
      #expect(down.code == .tooLarge)
    }
  }

  @Test(arguments: World.allCases)
  func `the server asks and the client answers`(_ world: World) async throws {
    try await Stage.run(world) { stage in
      let sessions = Tally<PeerSession>()
      let server = try await serve(stage, sessions)
      let client = try stage.client(of: server)
      client.onRequest(20) { request in request.body + [0] }
      client.onRequest(21) { _ in throw Rejection(4_000, body: [4]) }
      try await client.connect()
      await sessions.reached(1)
      let session = sessions.elements[0]
      #expect(try await session.request(20, [1, 2]) == [1, 2, 0])
      let rejected = try await failure { try await session.request(21, [1]) }
      #expect(rejected.response == 4_000 && rejected.body == [4])
      #expect(rejected.delivery == .answered)
      let refused = try await failure { try await session.request(22, [1]) }
      #expect(refused.response == .unknownType && refused.delivery == .refused)
      let counters = await server.counters().requests
      #expect(counters.submitted == 3 && counters.succeeded == 1 && counters.rejected == 2)
      #expect(await client.counters().connections.requestsReceived == 3)
    }
  }

  @Test(arguments: World.allCases)
  func `both sides ask at once`(_ world: World) async throws {
    try await Stage.run(world) { stage in
      let sessions = Tally<PeerSession>()
      let client = try stage.client(of: try await serve(stage, sessions))
      client.onRequest(20) { request in request.body }
      try await client.connect()
      await sessions.reached(1)
      let session = sessions.elements[0]
      try await withThrowingTaskGroup(of: Bool.self) { group in
        for number: UInt8 in 0..<50 {
          group.addTask { try await client.request(.echo, [number]) == [number] }
          group.addTask { try await session.request(20, [number]) == [number] }
        }
        for try await isRight in group { #expect(isRight) }
      }
    }
  }

  @Test(arguments: World.allCases)
  func `the server's request ends with its session`(_ world: World) async throws {
    try await Stage.run(world) { stage in
      let sessions = Tally<PeerSession>()
      let cancelled = Latch()
      let server = try await serve(stage, sessions)
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
      await sessions.reached(1)
      let session = sessions.elements[0]
      let asking = stage.spawn { try await failure { try await session.request(20, [1]) } }
      await began.wait()
      await client.close()
      let error = try await asking.value
      #expect(error.code == .connectionLost)
      #expect(error.delivery == .sent)
      await cancelled.wait()
      let late = try await failure { try await session.request(20, [1]) }
      #expect(late.code == .closed)
      #expect(late.delivery == .notSent)
      let push = try await failure { try await session.push(20, [1]) }
      #expect(push.code == .closed)
      #expect(await server.counters().requests.lost == 1)
    }
  }

  @Test(arguments: World.allCases, [100, 300_000])
  func `a broadcast reaches every session`(_ world: World, _ size: Int) async throws {
    try await Stage.run(world) { stage in
      let sessions = Tally<PeerSession>()
      let server = try await serve(stage, sessions)
      let clients = try (0..<5).map { _ in try stage.client(of: server) }
      var streams: [BufferedSequence<Push, Never>.Iterator] = []
      for client in clients {
        streams.append(client.pushes().makeAsyncIterator())
        try await client.connect()
      }
      await sessions.reached(5)
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

  @Test func `a broadcast passes sessions by that accept less`() async throws {
    try await Stage.simulate { stage, simulation in
      let sessions = Tally<PeerSession>()
      let server = try await serve(stage, sessions)
      let small = try stage.client(of: server) { $0.maxBody = 10 }
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
