// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Logging
import Testing

/// Streams in scripts: what each peer sends, and what its record says about the other side.
@Suite struct ScriptedStreamTests {
  private static let worlds = TestEnvironment.allCases

  // MARK: A scripted server

  /// Runs a scripted server with a real client, in virtual time.
  private func withClient(
    _ body:
      @escaping @Sendable (Simulation, SimulatedServer, LongLinkClient) async throws -> Void
  ) async throws {
    let simulation = Simulation(seed: 6)
    try await simulation.run {
      let server = try await SimulatedServer.start(on: simulation.mainLoop)
      var configuration = ClientConfiguration(servers: [server.endpoint])
      configuration.logger.logLevel = .critical
      let client = try LongLinkClient(configuration, on: simulation.mainLoop)
      try await body(simulation, server, client)
      await client.close()
      await server.stop()
    }
  }

  /// The items of a stream, and its outcome.
  private static func read(_ stream: ItemStream<[UInt8]>) async -> ([[UInt8]], LongLinkError?) {
    var items: [[UInt8]] = []
    do throws(LongLinkError) {
      var iterator = stream.makeAsyncIterator()
      while let item = try await iterator.next() { items.append(item) }
      return (items, nil)
    } catch {
      return (items, error)
    }
  }

  @Test func `a script sends items, pauses and responds`() async throws {
    try await withClient { simulation, server, client in
      let large = [UInt8](repeating: 7, count: 150_000)
      server.on(
        6,
        .sequence([
          .item([1]), .pause(.seconds(3)), .items([[], [2, 2]]), .item(large),
          .item([3, 4, 5], inFragmentsOf: 1), .reply([9]),
        ]))
      let stream = client.stream(6, [], options: StreamOptions(window: 1_000_000))
      let start = simulation.now
      let (items, error) = await Self.read(stream)
      #expect(items == [[1], [], [2, 2], large, [3, 4, 5]])
      #expect(error == nil && stream.response == [9])
      #expect(simulation.now - start >= 3_000_000_000)
      let record = try #require(server.streams(of: 6).first)
      #expect(record.firstCredit == 1_000_000 && !record.hasEnded && !record.isCancelled)
    }
  }

  @Test func `the record has the client's items, their end and its credit`() async throws {
    try await withClient { _, server, client in
      server.on(
        6, .sequence([.wait { $0.items.count == 2 }, .item([1]), .wait { $0.hasEnded }, .reply()]))
      let large = [UInt8](repeating: 3, count: 70_000)
      server.handshake = .welcome(
        features: [.metadata, .fragments, .streams], streamCredit: 1_000_000)
      _ = try await client.exchange(6, [5]) { items, writer in
        try await writer.write([1])
        try await writer.write(large)
        for try await _ in items { break }
      }
      let record = try #require(server.streams(of: 6).first)
      #expect(record.items == [[1], large] && record.hasEnded)
      #expect(record.creditUsed == 17 + 70_000 + 2 * 16)
      #expect(record.firstCredit == 65_536 && record.creditGranted >= 65_536)
      #expect(server.requests(of: 6).map(\.body) == [[5]])
    }
  }

  @Test func `a client writes nothing while the script withholds credit`() async throws {
    try await withClient { simulation, server, client in
      server.handshake = .welcome(
        features: [.metadata, .fragments, .streams], streamCredit: 1)
      server.on(
        6,
        .sequence([
          .pause(.seconds(5)), .credit(16), .pause(.seconds(5)), .credit(1_024),
          .wait { $0.hasEnded }, .reply(),
        ]))
      let task = simulation.spawn {
        try await client.sendItems(6, []) { writer in
          try await writer.write([1])
          try await writer.write([2, 2])
        }
      }
      try await simulation.sleep(for: .seconds(4))
      #expect(server.streams(of: 6).map(\.items) == [[]])
      try await simulation.sleep(for: .seconds(4))
      #expect(server.streams(of: 6).map(\.items) == [[[1]]])
      _ = try await task.value
      #expect(server.streams(of: 6).map(\.items) == [[[1], [2, 2]]])
      #expect(server.streams(of: 6).map(\.creditUsed) == [35])
    }
  }

  @Test func `items beyond the credit end the connection`() async throws {
    try await withClient { _, server, client in
      server.on(6, .items([[UInt8]](repeating: [UInt8](repeating: 1, count: 1_000), count: 2)))
      let (items, error) = await Self.read(
        client.stream(6, [], options: StreamOptions(window: 1_024)))
      #expect(items.count <= 1)
      #expect(error?.code == .protocolViolation && error?.itemsReceived == UInt64(items.count))
      try await server.wait { !$0.frames(of: .goaway).isEmpty }
      let goaway = try #require(server.record.frames(of: .goaway).first?.goAwayFields)
      #expect(goaway.code == .malformed)
    }
  }

  @Test func `an error in band, a late item and a cut are what the script says`() async throws {
    try await withClient { simulation, server, client in
      server.on(1, .sequence([.items([[1], [2]]), .reply(code: 1_234, body: [8])]))
      server.on(2, .sequence([.item([1]), .reply(), .item([2])]))
      server.on(3, .sequence([.item([1]), .cutItem([2, 2, 2], afterBytes: 17)]))
      server.on(4, .sequence([.partialItem([1, 2, 3], bytes: 2), .close]))
      var (items, error) = await Self.read(client.stream(1, []))
      #expect(items == [[1], [2]] && error?.response == 1_234 && error?.itemsReceived == 2)
      (items, error) = await Self.read(client.stream(2, []))
      #expect(items == [[1]] && error == nil)
      _ = try await client.ping()
      let late = await client.counters().connections.lateItems
      #expect(late == 1)
      (items, error) = await Self.read(client.stream(3, []))
      #expect(items == [[1]] && error?.delivery == .sent && error?.itemsReceived == 1)
      (items, error) = await Self.read(client.stream(4, []))
      #expect(items == [] && error?.code == .connectionLost && error?.itemsReceived == 0)
    }
  }

  @Test func `a stream that the client gives up is cancelled in the record`() async throws {
    try await withClient { _, server, client in
      server.on(6, .item([1]))
      for try await _ in client.stream(6, []) { break }
      let record = try await server.waitForStream(of: 6) { $0.isCancelled }
      #expect(record.items == [] && !record.hasEnded)
      #expect(server.cancels == [record.serial])
    }
  }

  // MARK: A scripted client

  /// Runs a scripted client with a real server, in virtual time.
  private func withServer(
    _ body:
      @escaping @Sendable (Simulation, LongLinkServer, SimulatedClient) async throws -> Void
  ) async throws {
    let simulation = Simulation(seed: 6)
    try await simulation.run {
      var configuration = ServerConfiguration(listen: [.host("10.0.0.1", port: 7_000)])
      configuration.logger.logLevel = .critical
      configuration.limits.streamWindows.first = 2_048
      let server = try LongLinkServer(configuration, on: [simulation.mainLoop])
      server.routeStream(6, [.requestItems, .responseItems]) { _, items, writer in
        for try await item in items { try await writer.write(item) }
        return [UInt8]([9])
      }
      try await server.start()
      let client = try await SimulatedClient.connect(
        to: .ipv4(10, 0, 0, 1, port: 7_000), on: simulation.mainLoop)
      let welcome = try await client.sayHello(
        .hello(features: [.metadata, .fragments, .streams], streamCredit: 5))
      #expect(welcome.streamCredit == 2_048)
      try await body(simulation, server, client)
      client.close()
      await server.shutDown(within: .zero)
    }
  }

  @Test func `a scripted client exchanges items with a server`() async throws {
    try await withServer { _, _, client in
      let serial = try await client.openStream(6, credit: 65_536, sendsItems: true)
      client.sendItem(serial, [1, 2, 3], inFragmentsOf: 2)
      client.sendItem(serial, [])
      try await client.waitForStream(serial) { $0.items.count == 2 }
      client.send(.end(serial))
      let response = try await client.waitForResponse(to: serial)
      #expect(response.code == .ok && response.body == [9])
      let stream = try #require(client.record.stream(serial))
      #expect(stream.items == [[1, 2, 3], []] && stream.creditUsed == 35 && stream.type == nil)
    }
  }

  @Test func `a server sends only what the scripted client lets it`() async throws {
    try await withServer { simulation, _, client in
      let serial = try await client.openStream(6, credit: 0, sendsItems: true)
      client.sendItem(serial, [1])
      client.sendItem(serial, [2])
      try await simulation.sleep(for: .seconds(1))
      #expect(client.record.stream(serial)?.items ?? [] == [])
      client.send(.credit(serial, 17))
      try await client.waitForStream(serial) { $0.items == [[1]] }
      try await simulation.sleep(for: .seconds(1))
      #expect(client.record.stream(serial)?.items == [[1]])
      client.send(.cancel(serial))
    }
  }

  @Test func `items beyond the server's window end the connection`() async throws {
    try await withServer { _, _, client in
      let serial = try await client.openStream(6, credit: 0, sendsItems: true)
      for _ in 0..<3 { client.sendItem(serial, [UInt8](repeating: 1, count: 1_000)) }
      try await client.waitForEnd()
      let goaway = try #require(client.record.frames(of: .goaway).first?.goAwayFields)
      #expect(goaway.code == .malformed)
    }
  }

  // MARK: Frames

  @Test func `frames of streams have the bytes that the wire prescribes`() {
    #expect(
      WireFrame.credit(51, 32_768).bytes.prefix(12)
        == [5, 0, 0, 0, 0, 0, 0, 51, 0, 0, 0, 4])
    #expect(WireFrame.credit(51, 32_768).grantedCredit == 32_768)
    #expect(WireFrame.item(51, [1]).bytes.prefix(12) == [2, 0, 0, 0, 0, 0, 0, 51, 0, 0, 0, 1])
    #expect(WireFrame.item(51, [1]).creditCost == 17 && WireFrame.end(51).creditCost == 0)
    #expect(WireFrame.end(51).bytes.prefix(12) == [3, 0, 0, 0, 0, 0, 0, 51, 0, 0, 0, 0])
    let request = WireFrame.streamRequest(7, serial: 51, [4], credit: 0, sendsItems: true)
    #expect(request.metadata == WireMetadata(credit: 0, items: true))
    #expect(request.payload == [4] && WireFrame.end(51).grantedCredit == nil)
  }

  @Test(arguments: worlds)
  func `both scripted peers record a stream, over real sockets too`(
    environment: TestEnvironment
  ) async throws {
    try await environment.runPair { server, client in
      server.on(6, .sequence([.item([7]), .credit(99), .wait { $0.hasEnded }, .reply()]))
      let serial = try await client.openStream(6, credit: 50, sendsItems: true)
      client.send([.item(serial, [1]), .end(serial)])
      _ = try await client.waitForResponse(to: serial)
      let here = try #require(client.record.stream(serial))
      #expect(here.items == [[7]] && here.grants == [99])
      let there = try #require(server.streams.first)
      #expect(there.items == [[1]] && there.hasEnded && there.firstCredit == 50)
      #expect(there.type == 6)
    }
  }
}
