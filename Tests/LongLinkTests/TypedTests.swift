// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Synchronization
import Testing

/// A note in, a note out.
private let echo = RPCMethod<Note, Note>(.echo)

@Suite struct TypedTests {
  @Test func `a handle's value is the decoded answer, and its cancel ends the request`()
    async throws
  {
    try await Stage.pair { _, _, client in
      let task = client.submit(echo, Note(7))
      #expect(try await task.value == Note(7))
      let damaged = try await failure {
        try await client.submit(RPCMethod<[UInt8], Note>(.echo), [255]).value
      }
      #expect(damaged.code == .decodingFailed && damaged.delivery == .answered)
      let hanging = client.submit(RPCMethod<Note, Note>(.hang), Note(1))
      hanging.cancel()
      #expect(try await failure { try await hanging.value }.code == .cancelled)
    }
  }

  @Test func `a completion handler gets the decoded answer`() async throws {
    try await Stage.simulate { stage, _ in
      let client = try stage.client(of: try await stage.serve())
      for (body, expected) in [([8], Note(8)), ([255], nil)] as [([UInt8], Note?)] {
        let outcome: Result<Note, LongLinkError> = await withCheckedContinuation { waiter in
          client.request(RPCMethod<[UInt8], Note>(.echo), body, on: .connectionLoop) {
            waiter.resume(returning: $0)
          }
        }
        #expect((try? outcome.get()) == expected)
      }
    }
  }

  @Test func `a server can make requests in all the ways in which a client can`() async throws {
    try await Stage.pair { stage, server, client in
      client.onRequest(.echo) { request in request.body }
      try await client.connect()
      let peer = try #require(await server.peers().first)
      #expect(try await peer.request(echo, Note(1)) == Note(1))
      #expect(try await peer.submit(.echo, [2] as [UInt8]).value == [2])
      let task = peer.submit(echo, Note(3))
      #expect(try await task.value == Note(3))
      #expect(await task.state == .completed && task.serial != nil)
      let outcome: Result<Note, LongLinkError> = await withCheckedContinuation { waiter in
        peer.request(echo, Note(4), on: .connectionLoop) { waiter.resume(returning: $0) }
      }
      #expect(try outcome.get() == Note(4))
      client.onRequest(.hang) { request in
        try await request.clock.sleep(for: .seconds(1_000_000))
        return request.body
      }
      let hanging = peer.submit(RPCMethod<Note, Note>(.hang), Note(5))
      hanging.cancel()
      #expect(try await failure { try await hanging.value }.code == .cancelled)
      await client.close()
      try await stage.until { await server.counters().openConnections == 0 }
      let late = try await failure { try await peer.submit(echo, Note(6)).value }
      #expect(late.code == .closed && late.messageType == .echo)
    }
  }

  @Test func `a method's options reach the wire if the call has none`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await SimulatedServer.start(on: simulation.mainLoop)
      server.handshake = .welcome(keySpace: [UInt8](1...16))
      server.on(1, [.reset, .reply([1]), .reply([2]), .reply([3])])
      let client = try stage.client(to: [server.endpoint])
      try await client.connect()
      let method = RPCMethod<[UInt8], Note>(
        1, "Say", of: "test", isReadOnly: true,
        options: RequestOptions(priority: 3, metadata: ["a": "b"]))
      #expect(method.options.retry == .idempotent)
      // It was lost once, and may have run.
      #expect(try await client.request(method, []) == Note(1))
      let keyed = RequestOptions(priority: 4, retry: .once)
      for number: UInt8 in [2, 3] {
        #expect(try await client.request(method, [], options: keyed) == Note(number))
      }
      let metadata = server.requests(of: 1).compactMap(\.metadata)
      #expect(metadata.map(\.priority) == [3, 3, 4, 4])
      #expect(metadata.map(\.entries) == Array(repeating: ["a": "b"], count: 4))
      #expect(metadata.map(\.idempotencyKey.count) == [0, 0, 16, 16])
      #expect(metadata[2].idempotencyKey != metadata[3].idempotencyKey)
      await server.stop()
    }
  }

  @Test func `pushes are messages, and a malformed one is an error and hides no other`()
    async throws
  {
    try await Stage.pair { _, server, client in
      let handled = Mutex<[UInt8?]>([])
      client.onPush(Note.self) { result in
        handled.withLock { $0.append((try? result.get())?.number) }
      }
      try await client.connect()
      var notes = client.pushes(of: Note.self).makeAsyncIterator()
      let peer = try #require(await server.peers().first)
      try await peer.push(Note(1))
      try await peer.push(Note.pushType, [255] as [UInt8])
      try await server.broadcast(Note(2))
      #expect(try await notes.next() == Note(1))
      #expect(try await failure { try await notes.next() }.code == .decodingFailed)
      #expect(try await notes.next() == Note(2))
      #expect(handled.withLock { $0 } == [1, nil, 2])
    }
  }

  @Test func `a message is pushed to each client of a principal`() async throws {
    try await Stage.pair(server: {
      $0.identity.authenticate = { Authentication(Principal($0.clientName)) }
    }) { stage, server, _ in
      let told = Mutex<[String]>([])
      for (index, name) in ["ann", "ann", "bob"].enumerated() {
        let client = try stage.client(of: server) { $0.name = name }
        client.onPush(Note.self) { note in
          told.withLock { $0.append("\(name) \(index) \((try? note.get())?.number ?? 0)") }
        }
        try await client.connect()
      }
      #expect(try await server.push(to: "ann", Note(1)).queued == 2)
      #expect(try await server.push(to: "eve", Note(2)).queued == 0)
      #expect(try await server.broadcast(Note(3)).queued == 3)
      try await stage.until { told.withLock { $0.count } == 5 }
      let sorted = told.withLock { $0.sorted() }
      #expect(sorted == ["ann 0 1", "ann 0 3", "ann 1 1", "ann 1 3", "bob 2 3"])
    }
  }

  @Test func `a full buffer may end a sequence of messages`() async throws {
    try await Stage.pair { _, server, client in
      try await client.connect()
      let sequence = client.pushes(of: Note.self, buffer: .close(1))
      let peer = try #require(await server.peers().first)
      for number in 1...3 { try await peer.push(Note(UInt8(number))) }
      _ = try await client.request(.echo, [] as [UInt8])
      var notes = sequence.makeAsyncIterator()
      #expect(try await notes.next() == Note(1))
      #expect(try await failure { try await notes.next() }.code == .overloaded)
    }
  }

  @Test func `a server receives pushes as messages, too`() async throws {
    let told = Mutex<[UInt8?]>([])
    try await Stage.serving { server in
      server.routeBasics()
      server.onPush(Note.self) { result, _ in
        told.withLock { $0.append((try? result.get())?.number) }
      }
    } _: { stage, _, client in
      try await client.connect()
      try await client.push(Note(5))
      try await client.push(Note.pushType, [] as [UInt8])
      try await stage.until { told.withLock { $0 } == [5, nil] }
    }
  }

  @Test func `a simulated server answers messages with messages`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await SimulatedServer.start(on: simulation.mainLoop)
      server.on(1) { (note: Note) in
        guard note.number > 0 else { throw Rejection(1_000, "nothing") }
        return Note(note.number + 1)
      }
      let client = try stage.client(to: [server.endpoint])
      #expect(try await client.request(echo, Note(1)) == Note(2))
      #expect(try await failure { try await client.request(1, Note(0)) }.response == 1_000)
      let damaged = try await failure { try await client.request(1, [255] as [UInt8]) }
      #expect(damaged.response == .malformed)
      #expect(throws: BodyError.self) { try server.requests(of: 1, as: Note.self) }
      #expect(try await server.waitForRequest(of: 1, as: Note.self) == Note(1))
      await server.stop()
    }
  }
}
