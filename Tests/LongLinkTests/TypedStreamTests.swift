// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Synchronization
import Testing

/// The notes below one.
private let count = RPCMethod<Note, Streamed<Note>>(20, "Count", of: "test")
/// The sum of notes.
private let sum = RPCMethod<Streamed<Note>, Note>(21, "Sum", of: "test")
/// Each note, plus one.
private let next = RPCMethod<Streamed<Note>, Streamed<Note>>(22, "Next", of: "test")
/// As many good items as its request says, then one that is no note, then good ones without end.
private let damaged = RPCMethod<Note, Streamed<Note>>(23)

/// Streams of messages between a client and a server.
@Suite struct TypedStreamTests {
  private static func routes(_ server: LongLinkServer) {
    server.routeBasics()
    server.routeStream(count) { note, request, writer in
      #expect(request.type == count.type)
      for number in 0..<note.number { try await writer.write(Note(number)) }
    }
    server.routeStream(sum) { _, notes in
      var sum: UInt8 = 0
      for try await note in notes { sum += note.number }
      return Note(sum)
    }
    server.routeStream(next) { _, notes, writer in
      for try await note in notes { try await writer.write(Note(note.number + 1)) }
    }
    server.routeStream(damaged.type, .responseItems) { request, _, writer in
      for _ in 0..<Int(request.body[0]) { try await writer.write([1] as [UInt8]) }
      try await writer.write([255] as [UInt8])
      while true { try await writer.write([2] as [UInt8]) }
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `messages go in either direction`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let client = try stage.client(of: try await stage.serve(setUp: Self.routes))
      var counted: [UInt8] = []
      for try await note in client.stream(count, Note(150)) { counted.append(note.number) }
      #expect(counted == Array(0..<150))
      let total = try await client.sendItems(sum) { writer in
        try await writer.write(Note(1))
        try await writer.write(contentsOf: (2...10).map { Note($0) })
      }
      #expect(total == Note(55))
      try await client.exchange(next) { notes, writer in
        var iterator = notes.makeAsyncIterator()
        for number: UInt8 in [5, 0, 9] {
          try await writer.write(Note(number))
          #expect(try await iterator.next() == Note(number + 1))
        }
        writer.finish()
        #expect(try await iterator.next() == nil)
      }
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `an item that does not decode cancels the request, and says how many came before it`(
    _ environment: TestEnvironment
  ) async throws {
    try await Stage.serving(in: environment, Self.routes) { stage, server, client in
      for number: UInt8 in [0, 3, 100] {
        var notes = client.stream(damaged, Note(number)).makeAsyncIterator()
        for _ in 0..<number { #expect(try await notes.next() == Note(1)) }
        let error = try await failure { try await notes.next() }
        #expect(error.code == .decodingFailed && error.delivery == .answered)
        #expect(error.itemsReceived == UInt64(number) && error.messageType == damaged.type)
        // An iterator that has failed never reports an end.
        #expect(try await failure { try await notes.next() }.code == .decodingFailed)
        // The error has cancelled the request, not the end of the iterator, which is still there.
        try await stage.until { await server.counters().requestsRunning == 0 }
        withExtendedLifetime(notes) {}
      }
      #expect(await server.counters().connections.handlersCancelled == 3)
    }
  }

  @Test func `an exchange ends with an item that does not decode`() async throws {
    try await Stage.serving { server in
      server.routeStream(next.type, [.requestItems, .responseItems]) { _, items, writer in
        for item: [UInt8] in [[7], [], [8]] { try await writer.write(item) }
        for try await _ in items {}
        return []
      }
    } _: { stage, server, client in
      let seen = Tally<Note>()
      let error = try await failure {
        try await client.exchange(next) { notes, _ in
          for try await note in notes { seen.add(note) }
        }
      }
      #expect(error.code == .decodingFailed && error.itemsReceived == 1)
      #expect(seen.elements == [Note(7)])
      try await stage.until { await server.counters().connections.handlersCancelled == 1 }
      // Whoever catches the error can go on behind the item.
      try await client.exchange(next) { notes, _ in
        var iterator = notes.makeAsyncIterator()
        let first = try await iterator.next()
        let error = try await failure { try await iterator.next() }
        let last = try await iterator.next()
        #expect(first == Note(7) && error.code == .decodingFailed && last == Note(8))
      }
    }
  }

  @Test func `a request or an item that does not decode is answered with 400`() async throws {
    try await Stage.serving(Self.routes) { _, server, client in
      let request = try await failure {
        for try await _ in client.stream(count.type, [255] as [UInt8]) {}
      }
      #expect(request.response == .malformed && request.delivery == .refused)
      let item = try await failure {
        try await client.sendItems(sum.type, []) { writer in
          for item: [UInt8] in [[1], [255]] { try await writer.write(item) }
        }
      }
      #expect(item.response == .malformed && item.delivery == .answered)
      let echoed = Tally<[UInt8]>()
      let behind = try await failure {
        try await client.exchange(next.type, []) { items, writer in
          for item: [UInt8] in [[1], [2], [255]] { try await writer.write(item) }
          for try await item in items { echoed.add(item) }
        }
      }
      #expect(behind.response == .malformed && behind.itemsReceived == 2)
      #expect(echoed.elements == [[2], [3]])
      let counters = await server.counters().connections
      #expect(counters.undecodable == 3 && counters.handlersFailed == 0)
    }
  }

  @Test func `a reply that does not decode fails the request`() async throws {
    try await Stage.simulate { stage, _ in
      let client = try stage.client(
        of: try await stage.serve(setUp: { server in
          server.routeStream(sum.type, .requestItems) { _, _, _ in [255] as [UInt8] }
        }))
      let error = try await failure { try await client.sendItems(sum) { _ in } }
      #expect(error.code == .decodingFailed && error.delivery == .answered)
    }
  }

  @Test func `a wait for an item can be bounded, and a broadcast be sent as messages`()
    async throws
  {
    try await Stage.simulate { stage, _ in
      let notes = ItemBroadcast<Note>(.dropOldest(9))
      let client = try stage.client(
        of: try await stage.serve(setUp: { server in
          server.routeStream(count) { _, _, writer in try await notes.send(to: writer) }
          server.routeStream(sum, itemTimeout: .seconds(5)) { _, items in
            for try await _ in items {}
            return Note(0)
          }
        }))
      let late = try await failure {
        try await client.sendItems(sum) { _ in try await stage.clientLoop.sleep(for: .seconds(9)) }
      }
      #expect(late.response == .deadlinePassed)
      let read = stage.spawn {
        var read: [Note] = []
        for try await note in client.stream(count, Note(1)) { read.append(note) }
        return read
      }
      try await stage.until { notes.subscribers == 1 }
      try notes.publish(Note(1))
      try notes.publish(Note(2))
      notes.finish()
      #expect(try await read.value == [Note(1), Note(2)])
    }
  }
}
