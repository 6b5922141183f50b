// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Synchronization
import Testing

/// Streams of messages in all styles of calls, and from both sides.
@Suite struct TypedStreamStyleTests {
  private static let count = RPCMethod<Note, Streamed<Note>>(20)
  private static let sum = RPCMethod<Streamed<Note>, Note>(21)
  private static let next = RPCMethod<Streamed<Note>, Streamed<Note>>(22)

  /// Counts to its request; a count to 100 has a note in its middle that is none, and no end.
  private static func routes(_ server: LongLinkServer) {
    server.routeBasics()
    server.routeStream(count.type, .responseItems) { request, _, writer in
      let end = request.body[0]
      for number in 0..<end {
        try await writer.write(end == 100 && number == 50 ? [255] : [number] as [UInt8])
      }
      if end == 100 { try await request.clock.sleep(for: .seconds(1_000_000)) }
      return []
    }
  }

  private typealias Outcome = Result<Void, LongLinkError>

  @Test func `messages go to a function, one after the other`() async throws {
    try await Stage.serving(Self.routes) { _, _, client in
      let notes = Tally<Note>()
      let outcomes = Tally<Outcome>()
      client.stream(Self.count, Note(50), on: .connectionLoop) { note in
        notes.add(note)
      } completion: { outcome in
        outcomes.add(outcome)
      }
      await outcomes.reached(1)
      #expect(notes.elements == (0..<50).map { Note($0) })
      try outcomes.elements[0].get()
    }
  }

  @Test func `the next message waits for the function, which may go on elsewhere`() async throws {
    try await Stage.serving(Self.routes) { stage, _, client in
      let notes = Tally<Note>()
      let outcomes = Tally<Outcome>()
      let isBusy = Mutex(false)
      client.stream(Self.count, Note(9), on: .connectionLoop) { note, next in
        #expect(
          isBusy.withLock { isBusy in
            !isBusy
              && {
                isBusy = true; return true
              }()
          })
        stage.spawn {
          try await stage.clientLoop.sleep(for: .seconds(1))
          notes.add(note)
          isBusy.withLock { $0 = false }
          next()
        }
      } completion: { outcome in
        outcomes.add(outcome)
      }
      await outcomes.reached(1)
      #expect(notes.elements == (0..<9).map { Note($0) })
      try outcomes.elements[0].get()
    }
  }

  @Test func `a message that does not decode cancels the request, and completes it once`()
    async throws
  {
    try await Stage.serving(Self.routes) { stage, server, client in
      let notes = Tally<Note>()
      let outcomes = Tally<Outcome>()
      let handle = client.stream(Self.count, Note(100), on: .connectionLoop) { note in
        notes.add(note)
      } completion: { outcome in
        outcomes.add(outcome)
      }
      await outcomes.reached(1)
      let error = try await failure { try outcomes.elements[0].get() }
      #expect(error.code == .decodingFailed && error.delivery == .answered)
      #expect(error.itemsReceived == 50 && notes.count == 50)
      try await stage.until { await handle.state == .completed }
      try await stage.until { await server.counters().connections.handlersCancelled == 1 }
      #expect(outcomes.count == 1)
    }
  }

  @Test func `a plain thread reads messages`() async throws {
    struct Enough: Error {}
    try await Stage.serving(in: .loopback, Self.routes) { stage, _, client in
      /// The numbers that were read, and what ended the stream.
      @Sendable func read(
        to end: UInt8, _ onItem: @escaping @Sendable (Note) throws -> Void = { _ in }
      ) async -> ([UInt8], (any Error)?) {
        await withCheckedContinuation { continuation in
          PlainThread.run {
            var numbers: [UInt8] = []
            let result = Result {
              try client.streamBlocking(Self.count, Note(end)) { note in
                numbers.append(note.number)
                try onItem(note)
              }
            }
            if case .failure(let error) = result {
              continuation.resume(returning: (numbers, error))
            } else {
              continuation.resume(returning: (numbers, nil))
            }
          }
        }
      }
      let (whole, none) = await read(to: 99)
      #expect(whole == Array(0..<99) && none == nil)
      let (part, error) = await read(to: 100)
      let damaged = try #require(error as? LongLinkError)
      #expect(part == Array(0..<50) && damaged.code == .decodingFailed)
      #expect(damaged.itemsReceived == 50 && damaged.delivery == .answered)
      let (few, enough) = await read(to: 99) { if $0 == Note(3) { throw Enough() } }
      #expect(few == [0, 1, 2, 3] && enough is Enough)
      try await stage.until { await client.counters().requestsOpen == 0 }
    }
  }

  @Test func `a client handles methods of its server`() async throws {
    try await Stage.pair { _, server, client in
      client.onRequest(RPCMethod<Note, Note>(19)) { note, _ in Note(note.number + 1) }
      client.onStreamRequest(Self.count) { note, request, writer in
        #expect(request.type == Self.count.type)
        for number in 0..<note.number { try await writer.write(Note(number)) }
      }
      client.onStreamRequest(Self.sum) { _, notes in
        var sum: UInt8 = 0
        for try await note in notes { sum += note.number }
        return Note(sum)
      }
      client.onStreamRequest(Self.next, itemTimeout: .seconds(5)) { _, notes, writer in
        for try await note in notes { try await writer.write(Note(note.number + 1)) }
      }
      try await client.connect()
      let peer = try #require(await server.peers().first)
      #expect(try await peer.request(RPCMethod<Note, Note>(19), Note(1)) == Note(2))
      var counted: [UInt8] = []
      for try await note in peer.stream(Self.count, Note(9)) { counted.append(note.number) }
      #expect(counted == Array(0..<9))
      let total = try await peer.sendItems(Self.sum) { writer in
        for number: UInt8 in 1...4 { try await writer.write(Note(number)) }
      }
      #expect(total == Note(10))
      try await peer.exchange(Self.next) { notes, writer in
        var iterator = notes.makeAsyncIterator()
        try await writer.write(Note(7))
        #expect(try await iterator.next() == Note(8))
      }
      let request = try await failure { try await peer.request(19, [255]) }
      #expect(request.response == .malformed && request.delivery == .refused)
      let stream = try await failure { for try await _ in peer.stream(20, [255]) {} }
      #expect(stream.response == .malformed && stream.delivery == .refused)
      let item = try await failure {
        try await peer.sendItems(Self.sum.type, []) { try await $0.write([255]) }
      }
      #expect(item.response == .malformed && item.delivery == .answered)
      let late = try await failure {
        try await peer.exchange(Self.next) { notes, _ in for try await _ in notes {} }
      }
      #expect(late.response == .deadlinePassed)
    }
  }

  @Test func `a simulated server waits for the messages of a stream`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await SimulatedServer.start(on: simulation.mainLoop)
      server.on(
        Self.sum.type, .sequence([.wait { $0.hasEnded }, .reply(encoding: Note(6))]))
      let client = try stage.client(to: [server.endpoint])
      let hasWritten = Latch()
      let sum = stage.spawn {
        try await client.sendItems(Self.sum) { writer in
          for number: UInt8 in 1...3 { try await writer.write(Note(number)) }
          await hasWritten.wait()
        }
      }
      let early = try await server.waitForItems(of: 21, as: Note.self) { $0.items.count == 2 }
      #expect(early == [Note(1), Note(2)])
      hasWritten.open()
      #expect(try await server.waitForItems(of: 21, as: Note.self) == [Note(1), Note(2), Note(3)])
      #expect(try await sum.value == Note(6))
      _ = try await client.sendItems(Self.sum) { try await $0.write(Note(9)) }
      #expect(try await server.waitForItems(of: 21, as: Note.self, count: 2) == [Note(9)])
      #expect(try server.items(of: 21, as: Note.self).map(\.count) == [3, 1])
      _ = try await client.sendItems(21, []) { try await $0.write([255]) }
      await #expect(throws: BodyError.self) {
        try await server.waitForItems(of: 21, as: Note.self, count: 3)
      }
      await server.stop()
    }
  }
}
