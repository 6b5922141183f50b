// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Testing

/// What handlers learn when their connection is to be left.
@Suite struct DrainingHandlerTests {
  /// A server with a broadcast to its streams of type 70, which end when they are to.
  private static func serve(
    _ prices: ItemBroadcast<[UInt8]>, in stage: Stage
  ) async throws -> LongLinkServer {
    try await stage.serve { server in
      server.routeBasics()
      server.routeStream(70, .responseItems) { request, _, writer in
        try await request.untilDraining { try await prices.send(to: writer) }
        return [7]
      }
    }
  }

  @Test func `a server whose streams listen shuts down at once`() async throws {
    try await Stage.simulate { stage, simulation in
      let prices = ItemBroadcast<[UInt8]>(.dropOldest(64))
      let server = try await Self.serve(prices, in: stage)
      let items = Tally<[UInt8]>()
      let clients = try (0..<3).map { _ in try stage.client(of: server) }
      let streams = clients.map { client in
        stage.spawn { for try await item in client.stream(70, []) { items.add(item) } }
      }
      try await stage.until { prices.subscribers == 3 }
      try prices.publish([1])
      await items.reached(3)
      let begin = simulation.now
      await server.shutDown(within: .seconds(60))
      #expect(begin.duration(to: simulation.now) < .seconds(1))
      for stream in streams {
        let error = try await failure { try await stream.value }
        #expect(error.response == .draining && error.itemsReceived == 1, "\(error)")
      }
      #expect(prices.subscribers == 0)
    }
  }

  @Test func `what ends in good order is answered, and so is a handler that was not asked`()
    async throws
  {
    try await Stage.simulate { stage, _ in
      let prices = ItemBroadcast<[UInt8]>(.dropOldest(64))
      let server = try await Self.serve(prices, in: stage)
      let client = try stage.client(of: server)
      let stream = client.stream(70, [])
      let reading = stage.spawn { for try await _ in stream {} }
      try await stage.until { prices.subscribers == 1 }
      prices.finish()
      try await reading.value
      #expect(stream.response == [7])
    }
  }

  @Test func `a body that goes on to its end is heard, and a cancelled handler is cancelled`()
    async throws
  {
    try await Stage.simulate { stage, _ in
      let ends = Tally<String>()
      let server = try await stage.serve { server in
        server.routeBasics()
        server.route(71) { request in
          try await request.untilDraining {
            do {
              try await request.clock.sleep(for: .seconds(100))
            } catch {
              ends.add("\(error)")
            }
            return request.body + [1]
          }
        }
        server.route(72) { request in
          do {
            return try await request.untilDraining {
              try await request.clock.sleep(for: .seconds(100))
              return []
            }
          } catch {
            ends.add(error is Rejection ? "rejection" : "\(type(of: error))")
            throw error
          }
        }
      }
      let client = try stage.client(of: server)
      let cancelled = client.submit(72, [], options: .patient)
      try await stage.running(1, on: server)
      cancelled.cancel()
      await ends.reached(1)
      #expect(ends.elements == ["CancellationError"])
      let heard = client.submit(71, [5], options: .patient)
      let refused = client.submit(72, [], options: .patient)
      try await stage.running(2, on: server)
      await server.shutDown(within: .seconds(60))
      #expect(try await heard.value == [5, 1])
      let error = try await failure { try await refused.value }
      #expect(error.response == .draining && error.delivery == .answered, "\(error)")
      #expect(ends.elements.contains("rejection"))
    }
  }

  @Test(arguments: [TestEnvironment.simulated, .loopback])
  func `a reader of items answers when its connection is drained`(_ environment: TestEnvironment)
    async throws
  {
    try await Stage.run(environment) { stage in
      let placement = environment.isSimulated ? HandlerPlacement.connectionLoop : .globalPool
      let read = Tally<[UInt8]>()
      let server = try await stage.serve { server in
        server.routeStream(73, .requestItems, on: placement) { _, items, _ in
          for try await item in items.untilDraining { read.add(item) }
          return [UInt8(read.count)]
        }
      }
      let client = try stage.client(of: server)
      let task = stage.spawn {
        try await client.sendItems(73, []) { writer in
          for number in 0..<3 { try await writer.write([UInt8(number)]) }
          await writer.waitForEnd()
        }
      }
      await read.reached(3)
      await server.drain(await server.peers()[0], within: .seconds(600))
      #expect(try await task.value == [3])
    }
  }

  @Test func `a reader whose client never stops answers, too`() async throws {
    try await Stage.simulate { stage, simulation in
      let read = Tally<Void>()
      let server = try await stage.serve { server in
        server.routeStream(73, .requestItems) { _, items, _ in
          for try await _ in items.untilDraining { read.add(()) }
          return []
        }
      }
      let client = try stage.client(of: server)
      let task = stage.spawn {
        try await client.sendItems(73, []) { writer in
          while true { try await writer.write([1]) }
        }
      }
      await read.reached(1_000)
      await server.drain(await server.peers()[0], within: .seconds(60))
      #expect(try await task.value == [])
    }
  }

  @Test func `events tell that the client moves, and that the server drains`() async throws {
    try await Stage.simulate { stage, simulation in
      let told = Tally<String>()
      let server = try await stage.serve { server in
        server.routeBasics()
        server.routeStream(74, .responseItems) { request, _, writer in
          let peer = request.peer
          try await writer.write([0])
          for await event in peer.events { told.add("\(peer.connectionID) \(event)") }
          told.add("\(peer.connectionID) ended")
          return []
        }
      }
      let client = try stage.client(of: server)
      let first = stage.spawn { for try await _ in client.stream(74, []) {} }
      try await stage.running(1, on: server)
      let old = await server.peers()[0]
      client.pathChanged(network: "other")
      await told.reached(1)
      #expect(told.elements == ["1 moved"])
      try await stage.until { await client.counters().connects == 2 }
      let second = stage.spawn { for try await _ in client.stream(74, []) {} }
      try await stage.running(2, on: server)
      let end = simulation.now.advanced(by: .seconds(3))
      let draining = stage.spawn { await server.drain(old, within: .seconds(3)) }
      await told.reached(3)
      #expect(
        Set(told.elements) == [
          "1 moved", "1 \(PeerEvent.draining(until: end))", "2 \(PeerEvent.draining(until: end))",
        ])
      // Whoever asks later hears what has happened.
      var late: [PeerEvent] = []
      for await event in old.events {
        late.append(event)
        if late.count == 2 { break }
      }
      #expect(late == [.moved, .draining(until: end)])
      try await draining.value
      _ = try await failure { try await first.value }
      _ = try await failure { try await second.value }
      #expect(told.elements.suffix(2).sorted() == ["1 ended", "2 ended"])
      for await event in old.events { Issue.record("\(event)") }
    }
  }

  @Test func `a handler of a client hears that the server leaves`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve()
      let client = try stage.client(of: server)
      let told = Tally<PeerEvent>()
      let begun = Tally<MessageType>()
      client.onRequest(75) { request in
        begun.add(request.type)
        for await event in request.peer.events { told.add(event) }
        return []
      }
      client.onRequest(76) { request in
        begun.add(request.type)
        try await request.untilDraining { try await request.clock.sleep(for: .seconds(100)) }
        return []
      }
      try await client.connect()
      let peer = await server.peers()[0]
      let asking = stage.spawn { try await peer.request(75, [], options: .patient) }
      let refused = stage.spawn { try await peer.request(76, [], options: .patient) }
      await begun.reached(2)
      let begin = simulation.now
      await server.shutDown(within: .seconds(5))
      #expect(told.elements == [.leaving])
      #expect(begin.duration(to: simulation.now) < .seconds(7))
      let error = try await failure { try await refused.value }
      #expect(error.response == .draining, "\(error)")
      _ = try await failure { try await asking.value }
    }
  }

  // MARK: Bounds

  @Test func `a listener that has gone leaves nothing`() async throws {
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve { server in
        server.route(77) { request in try await request.untilDraining { request.body } }
      }
      let client = try stage.client(of: server)
      for number in 0..<100 {
        #expect(try await client.request(77, [UInt8(number)]) == [UInt8(number)])
      }
      let peer = await server.peers()[0]
      // One that is dropped at once, and one whose reader is cancelled.
      _ = peer.events
      let reading = stage.spawn { for await _ in peer.events {} }
      try await stage.until { await peer.loop.run { peer.eventListeners } == 1 }
      reading.cancel()
      try await stage.until { await peer.loop.run { peer.eventListeners } == 0 }
    }
  }

  @Test func `an earlier end is told, and the same is not told again`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve()
      let client = try stage.client(of: server)
      let request = try await stage.hang(client, on: server)
      let peer = await server.peers()[0]
      let told = Tally<PeerEvent>()
      let reading = stage.spawn { for await event in peer.events { told.add(event) } }
      let begin = simulation.now
      let drains = [30, 60, 5].map { bound in
        stage.spawn { await server.drain(peer, within: .seconds(bound)) }
      }
      await told.reached(2)
      for drain in drains { _ = try await drain.value }
      _ = try await failure { try await request.value }
      try await reading.value
      let ends = [30, 5].map { PeerEvent.draining(until: begin.advanced(by: .seconds($0))) }
      #expect(Array(told.elements.prefix(2)) == ends)
      #expect(!told.elements.dropFirst(2).contains { $0 != .moved }, "\(told.elements)")
    }
  }

  @Test func `a failure of the body is heard, although the connection is drained`() async throws {
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve { server in
        server.route(78) { request in
          try await request.untilDraining {
            try? await request.clock.sleep(for: .seconds(100))
            throw Rejection(1_000, "the disk is full")
          }
        }
      }
      let client = try stage.client(of: server)
      let request = client.submit(78, [], options: .patient)
      try await stage.running(1, on: server)
      await server.drain(await server.peers()[0])
      let error = try await failure { try await request.value }
      #expect(error.response == 1_000, "\(error)")
    }
  }

  @Test func `a reader elsewhere gets no more than the item that it has asked for`() async throws {
    try await Stage.run(.loopback) { stage in
      let (read, goOn) = (Tally<[UInt8]>(), Latch())
      let server = try await stage.serve { server in
        server.routeStream(79, .requestItems, on: .globalPool) { _, items, _ in
          for try await item in items.untilDraining {
            read.add(item)
            await goOn.wait()
          }
          return [UInt8(read.count)]
        }
      }
      let client = try stage.client(of: server)
      let task = stage.spawn {
        try await client.sendItems(79, []) { writer in
          try await writer.write(contentsOf: (0..<64).map { [UInt8($0)] })
          await writer.waitForEnd()
        }
      }
      await read.reached(1)
      let peer = await server.peers()[0]
      let told = Tally<PeerEvent>()
      let reading = stage.spawn { for await event in peer.events { told.add(event) } }
      let draining = stage.spawn { await server.drain(peer, within: .seconds(600)) }
      await told.reached(1)
      goOn.open()
      #expect(try await task.value == [1])
      try await draining.value
      try await reading.value
    }
  }
}
