// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Synchronization
import Testing

/// Streams that are opened again when they are cut off: where they go on.
@Suite struct ResumingStreamTests {
  /// Runs a body with a server that has a log, and a client.
  private static func run(
    seed: UInt64 = 1, client: @Sendable @escaping (inout ClientConfiguration) -> Void = { _ in },
    server: @Sendable @escaping (inout ServerConfiguration) -> Void = { _ in },
    _ body:
      @escaping @Sendable (Stage, LongLinkServer, LongLinkClient, NumberLog) async throws -> Void
  ) async throws {
    try await Stage.simulate(seed: seed) { stage, _ in
      let log = NumberLog()
      let started = try await stage.serve(setUp: { log.route(on: $0) }, configure: server)
      try await body(stage, started, try stage.client(of: started, configure: client), log)
    }
  }

  // MARK: Losses

  @Test func `a stream goes on after its last item when its connection is lost`() async throws {
    try await Self.run { stage, server, client, log in
      let reader = NumberReader(NumberLog.stream(client))
      try await reader.read(to: 30)
      stage.simulation?.network.loseAllLinks()
      for peer in await server.peers() { peer.close() }
      try await reader.read(to: 200)
      #expect(reader.losses.count == 1 && reader.attempts == 1)
      #expect(reader.losses[0]?.code == .connectionLost, "\(reader.losses)")
      #expect(reader.losses[0]?.itemsReceived == 30)
      #expect(log.opens.elements == [0, 30])
    }
  }

  @Test func `a stream goes on over short links`() async throws {
    let opens = Tally<UInt64>()
    try await Stage.serving(in: .short) { server in
      server.routeStream(NumberLog.type, .responseItems) { request, _, writer in
        let after = NumberLog.number(request.body)
        opens.add(after)
        for number in 1...5 as ClosedRange<UInt64> {
          try await writer.write(NumberLog.bytes(after + number))
        }
        try await request.clock.sleep(for: .seconds(100))
        return []
      }
    } _: { stage, _, client in
      let reader = NumberReader(NumberLog.stream(client))
      for number in 1...4 as ClosedRange<UInt64> {
        try await reader.read(to: 5 * number)
        stage.simulation?.network.loseAllLinks()
      }
      #expect(reader.losses.count == 3 && opens.elements == [0, 5, 10, 15])
    }
  }

  @Test func `a stream goes on at a server that was restarted`() async throws {
    try await Self.run(server: { $0.drain.spread = .zero }) { stage, server, client, log in
      let reader = NumberReader(NumberLog.stream(client))
      try await reader.read(to: 30)
      let endpoint = server.endpoints[0]
      let restarting = stage.spawn {
        await server.shutDown(within: .seconds(2))
        try await stage.clientLoop.sleep(for: .seconds(20))
        return try await stage.serve(at: endpoint, setUp: { log.route(on: $0) })
      }
      try await reader.read(to: 600)
      _ = try await restarting.value
      #expect(reader.losses.count == 1 && reader.losses[0] != nil)
      // It was read to the end of the drain.
      #expect(log.opens.elements[1] >= 45, "\(log.opens.elements)")
    }
  }

  @Test(arguments: 0..<40 as Range<UInt64>)
  func `no item is missing or comes twice, whatever happens to a slow reader`(
    seed: UInt64
  ) async throws {
    try await Self.run(seed: seed) { stage, server, client, log in
      let simulation = stage.simulation!
      let other = try await stage.serve(setUp: { log.route(on: $0) })
      let trouble = stage.spawn {
        for _ in 0..<12 {
          try await simulation.sleep(for: .milliseconds(simulation.random(in: 1...4_000)))
          switch simulation.random(in: 0...3 as ClosedRange<Int>) {
          case 0: client.pathChanged()
          case 1: simulation.network.loseAllLinks()
          case 2: for peer in await server.peers() { peer.close() }
          default:
            let named = simulation.random(in: 0...1 as ClosedRange<Int>) == 0 ? server : other
            for host in [server, other] {
              for peer in await host.peers() {
                await host.drain(peer, within: .seconds(3), alternatives: named.endpoints)
              }
            }
          }
        }
      }
      let reader = NumberReader(NumberLog.stream(client, options: StreamOptions(window: 1_024)))
      while reader.last < 600 {
        try await reader.read(to: reader.last + simulation.random(in: 1...20))
        try await simulation.sleep(for: .milliseconds(simulation.random(in: 0...2_000)))
      }
      try await trouble.value
      #expect(!reader.losses.isEmpty)
    }
  }

  // MARK: Moves

  /// Expects that the stream goes on without a pause, on another connection.
  private static func expectMove(_ reader: NumberReader, _ stage: Stage) async throws {
    while reader.last < 300 {
      try await reader.read(to: reader.last + 1)
      let due = LinkInstant(nanoseconds: Int64(reader.last) * 100_000_000)
      #expect(due.duration(to: stage.clientLoop.clock.now) < .milliseconds(100))
    }
    #expect(reader.losses == [nil] && reader.attempts == 1)
  }

  @Test func `a stream moves with its client to another network without a pause`() async throws {
    try await Self.run { stage, _, client, log in
      let reader = NumberReader(NumberLog.stream(client))
      try await reader.read(to: 30)
      client.pathChanged()
      try await Self.expectMove(reader, stage)
      #expect(log.opens.count == 2)
      #expect(await client.counters().migrations == 1)
    }
  }

  @Test func `a stream is read on the draining server until the next one is ready`() async throws {
    try await Self.run(server: { $0.drain.spread = .zero }) { stage, server, client, log in
      let reader = NumberReader(NumberLog.stream(client))
      try await reader.read(to: 30)
      let other = try await stage.serve(setUp: { log.route(on: $0) })
      let draining = stage.spawn {
        await server.shutDown(within: .seconds(1_000), alternatives: other.endpoints)
      }
      try await Self.expectMove(reader, stage)
      // The stream was all that it waited for.
      try await draining.value
      #expect(stage.clientLoop.clock.now.nanoseconds < 31_000_000_000)
    }
  }

  @Test func `a slow reader takes what has arrived, and then moves`() async throws {
    try await Self.run { stage, server, client, log in
      let reader = NumberReader(NumberLog.stream(client))
      try await reader.read(to: 30)
      try await stage.clientLoop.sleep(for: .seconds(1))
      client.pathChanged()
      try await stage.until { await client.counters().migrations == 1 }
      // The old connection does not wait for the reader.
      try await stage.until { await server.counters().openConnections == 1 }
      try await stage.clientLoop.sleep(for: .seconds(100))
      #expect(log.opens.count == 1)
      try await reader.read(to: 1_200)
      #expect(reader.losses == [nil])
      #expect((39...42).contains(log.opens.elements[1]), "\(log.opens.elements)")
    }
  }

  @Test(arguments: [true, false])
  func `a stream outlives the credentials of its client`(isInPlace: Bool) async throws {
    try await Self.run(
      client: {
        $0.identity.credential = { isInPlace ? [1] : [] }
        $0.identity.sendsCredentialUnencrypted = true
      },
      server: {
        $0.identity.authenticate = { _ in
          Authentication(Principal("ann"), validity: .seconds(60))
        }
      }
    ) { _, server, client, log in
      let reader = NumberReader(NumberLog.stream(client))
      try await reader.read(to: 3_000)
      let moves = await client.counters().migrations
      #expect(isInPlace ? moves == 0 : moves >= 4, "\(moves)")
      #expect(reader.losses == [LongLinkError?](repeating: nil, count: Int(moves)))
      #expect(log.opens.count == Int(moves) + 1)
    }
  }

  // MARK: Messages

  @Test func `messages go on after the last one`() async throws {
    let watch = RPCMethod<Note, Streamed<Note>>(71, "Watch", of: "test")
    try await Stage.serving { server in
      server.routeStream(watch) { note, request, writer in
        for number in note.number..<9 {
          try await writer.write(Note(number + 1))
          if number % 4 == 3 { throw Rejection(.draining) }
        }
      }
    } _: { _, _, client in
      let stream = client.stream(watch, resuming: { last in Note(last?.number ?? 0) })
      var numbers: [UInt8] = []
      for try await note in stream { numbers.append(note.number) }
      #expect(numbers == Array(1...9))
      #expect(await client.counters().requests.submitted == 3)
    }
  }

  @Test func `a stream that is left is cancelled, and one that was never read is not sent`()
    async throws
  {
    try await Self.run { stage, server, client, log in
      _ = NumberLog.stream(client)
      for try await item in NumberLog.stream(client) where NumberLog.number(item) == 5 { break }
      try await stage.until { await server.counters().requestsRunning == 0 }
      #expect(log.opens.count == 1)
      #expect(await client.counters().requests.cancelled == 1)
    }
  }

  @Test func `a client's own stream handler serves a stream of the server that goes on`()
    async throws
  {
    try await Stage.serving { _ in
    } _: { stage, server, client in
      client.onStreamRequest(72, .responseItems) { request, _, writer in
        let number = NumberLog.number(request.body) + 1
        try await writer.write(NumberLog.bytes(number))
        throw Rejection(.overloaded, "one at a time")
      }
      try await client.connect()
      let peer = await server.peers()[0]
      var stream = peer.stream(72, resuming: { NumberLog.bytes(NumberLog.number($0)) })
      for number in 1...5 as ClosedRange<UInt64> {
        #expect(NumberLog.number(try await stream.next()) == number)
      }
      await client.close()
      let error = try await failure { while try await stream.next() != nil {} }
      #expect(error.code == .closed && error.itemsReceived == 5, "\(error)")
    }
  }
}
