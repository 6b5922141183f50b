// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkTesting
import LongLinkTransport
import Testing

/// What servers that mean harm, or are broken, make of a client. `HintTests` has those that send
/// clients away, `ClientLogTests` those that talk too much.
@Suite struct HostileServerTests {
  private static let bound = 400_000

  private func connected(
    _ stage: Stage, setUp: (LongLinkClient) -> Void = { _ in }
  ) async throws -> (SimulatedServer, LongLinkClient) {
    let server = try await SimulatedServer.start(
      on: stage.serverLoop, at: .ipv4(10, 0, 0, 1, port: 4000))
    server.on(.echo) { .reply($0.body) }
    let client = try stage.client(to: [.host("10.0.0.1", port: 4000)]) {
      $0.limits.maxBody = 100_000
      $0.limits.maxRequestBytes = Self.bound
      $0.limits.maxInFlight = 50
    }
    setUp(client)
    try await client.connect()
    return (server, client)
  }

  /// The first 45,000 bytes of a message that never ends.
  private static func begun(_ serial: UInt32) -> WireFrame {
    let serial = serial | 0x8000_0000
    return WireFrame.request(9, serial: serial, [UInt8](repeating: 7, count: 90_000))
      .fragments(of: 45_000)[0]
  }

  @Test func `unsolicited requests take no more memory than was allowed`() async throws {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await connected(stage)
      for serial: UInt32 in 50..<80 { server.send(Self.begun(serial)) }
      let room = Self.bound / 45_000
      try await server.wait { $0.responses.count >= 30 - room }
      #expect(server.record.responses.count == 30 - room)
      #expect(server.record.responses.allSatisfy { $0.code == .overloaded && $0.isRefused })
      #expect(try await client.request(.echo, [1]) == [1])
      #expect(server.connectionsAccepted == 1)
      // What does not go on is forgotten, and its room is free again.
      try await simulation.sleep(for: .seconds(120))
      #expect(try await client.request(.echo, [1]) == [1])
      await server.stop()
    }
  }

  @Test func `an unsolicited push ends the connection when it takes too much memory`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await connected(stage)
      for serial: UInt32 in 50..<58 { server.send(Self.begun(serial)) }
      let push = WireFrame.push(7, [UInt8](repeating: 7, count: 90_000))
      server.send(push.fragments(of: 45_000)[0])
      try await server.waitForEndings(1)
      #expect(await client.counters().violations == ["lengthOverLimit": 1])
      #expect(try await client.request(.echo, [1]) == [1])
      await server.stop()
    }
  }

  @Test func `a server cannot start more handlers by cancelling`() async throws {
    try await Stage.simulate { stage, simulation in
      let (began, goOn) = (Tally<UInt32>(), Latch())
      let (server, client) = try await connected(stage) { client in
        client.onRequest(9) { request in
          began.add(request.serial)
          await goOn.wait()
          return request.body
        }
      }
      for number: UInt32 in 50..<1_050 {
        let serial = number | 0x8000_0000
        server.send(.request(9, serial: serial, [1]))
        // Once it runs: what was cancelled before is not even begun.
        if number % 10 == 0 { try await simulation.sleep(for: .milliseconds(1)) }
        server.send(.cancel(serial))
      }
      #expect(try await client.request(.echo, [1]) == [1])
      #expect(began.count <= 50, "\(began.count)")
      goOn.open()
      let answer = try await server.ask(9, [5])
      #expect(answer.code == .ok && answer.body == [5])
      await server.stop()
    }
  }

  @Test func `items of a request that a server has not accepted come once`() async throws {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await connected(stage)
      let goaway = WireFrame.goAway(code: .draining, requestsAccepted: 0)
      server.on(20, .sequence([.items([[1], [2]]), .frame { _ in goaway }]))
      var items = client.stream(20, []).makeAsyncIterator()
      #expect(try await items.next() == [1])
      try await server.waitForConnections(2)
      try await simulation.sleep(for: .seconds(60))
      #expect(try await items.next() == [2])
      let error = try await failure { try await items.next() }
      #expect(error.delivery == .sent && error.itemsReceived == 2)
      #expect(server.requests(of: 20).count == 1)
      await server.stop()
    }
  }

  @Test func `a server that sends a client away again and again does not pile up connections`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await connected(stage)
      // It never closes one.
      server.on(.echo, .sequence([.reply(), .goAway()]))
      var most = 0
      let end = simulation.now.advanced(by: .seconds(60))
      while simulation.now < end {
        _ = try? await client.request(.echo, [1])
        most = max(most, simulation.network.links(to: server.address).count)
        try await simulation.sleep(for: .milliseconds(1))
      }
      #expect(server.connectionsAccepted > 10)
      // One that is used, one that is made, and three that were left.
      #expect(most <= 5, "\(most)")
      await server.stop()
    }
  }

  @Test func `a client does not reconnect incessantly to a server that responds and closes`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await connected(stage)
      server.on(.fail, .sequence([.reply(), .close]))
      let end = simulation.now.advanced(by: .seconds(3_600))
      while simulation.now < end {
        _ = try? await client.request(.fail, [1])
        try await simulation.sleep(for: .milliseconds(1))
      }
      // Half a second apart in the mean: each answer has shown that the server works.
      #expect(server.connectionsAccepted < 9_000, "\(server.connectionsAccepted)")
      await server.stop()
    }
  }
}
