import LongLink
import LongLinkServer
import LongLinkTesting
import Synchronization
import Testing

/// A message of one byte, which is pushed with type 40; 255 is no message.
private struct Note: PushMessage, Hashable {
  static var pushType: MessageType { 40 }

  var number: UInt8

  init(_ number: UInt8) {
    self.number = number
  }

  var encodedByteCount: Int { 1 }

  func encode(into output: inout OutputRawSpan) {
    output.append(number)
  }

  init(decoding body: RawSpan) throws(BodyError) {
    let bytes = unsafe body.withUnsafeBytes { unsafe [UInt8]($0) }
    guard bytes.count == 1, bytes[0] != 255 else { throw BodyError(.malformed) }
    number = bytes[0]
  }
}

@Suite struct TypedTests {
  @Test func `a handle's value is the decoded answer, and its cancel ends the request`()
    async throws
  {
    try await Stage.simulate { stage, _ in
      let client = try stage.client(of: try await stage.serve())
      let task = client.start(.echo, Note(7), returning: Note.self)
      #expect(try await task.value == Note(7))
      let damaged = try await failure {
        try await client.start(.echo, [255] as [UInt8], returning: Note.self).value
      }
      #expect(damaged.code == .decodingFailed && damaged.delivery == .answered)
      let hanging = client.start(.hang, Note(1), returning: Note.self)
      hanging.cancel()
      #expect(try await failure { try await hanging.value }.code == .cancelled)
    }
  }

  @Test func `a completion handler gets the decoded answer`() async throws {
    try await Stage.simulate { stage, _ in
      let client = try stage.client(of: try await stage.serve())
      for (body, expected) in [([8], Note(8)), ([255], nil)] as [([UInt8], Note?)] {
        let outcome: Result<Note, LongLinkError> = await withCheckedContinuation { waiter in
          client.request(.echo, body, returning: Note.self, on: .clientLoop) {
            waiter.resume(returning: $0)
          }
        }
        #expect((try? outcome.get()) == expected)
      }
    }
  }

  @Test func `pushes are messages, and what is none says so and hides no other`() async throws {
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve()
      let client = try stage.client(of: server)
      let handled = Mutex<[UInt8?]>([])
      client.onPush(Note.self) { result in
        handled.withLock { $0.append((try? result.get())?.number) }
      }
      try await client.connect()
      var notes = client.pushes(of: Note.self).makeAsyncIterator()
      let session = try #require(await server.sessions().first)
      try await session.push(Note(1))
      try await session.push(Note.pushType, [255] as [UInt8])
      try await server.broadcast(Note(2))
      #expect(try await notes.next() == Note(1))
      #expect(try await failure { try await notes.next() }.code == .decodingFailed)
      #expect(try await notes.next() == Note(2))
      #expect(handled.withLock { $0 } == [1, nil, 2])
    }
  }

  @Test func `a full buffer may end a sequence of messages`() async throws {
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve()
      let client = try stage.client(of: server)
      try await client.connect()
      let sequence = client.pushes(of: Note.self, buffer: .close(1))
      let session = try #require(await server.sessions().first)
      for number in 1...3 { try await session.push(Note(UInt8(number))) }
      _ = try await client.request(.echo, [] as [UInt8])
      var notes = sequence.makeAsyncIterator()
      #expect(try await notes.next() == Note(1))
      #expect(try await failure { try await notes.next() }.code == .overloaded)
    }
  }

  @Test func `a server is told messages, too`() async throws {
    try await Stage.simulate { stage, _ in
      let told = Mutex<[UInt8?]>([])
      let server = try await stage.serve { server in
        server.routeBasics()
        server.onPush(Note.self) { result, _ in
          told.withLock { $0.append((try? result.get())?.number) }
        }
      }
      let client = try stage.client(of: server)
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
      let client = try stage.client(to: [.host("127.0.0.1", port: server.address.port!)])
      #expect(try await client.request(1, Note(1), returning: Note.self) == Note(2))
      #expect(try await failure { try await client.request(1, Note(0)) }.response == 1_000)
      let damaged = try await failure { try await client.request(1, [255] as [UInt8]) }
      #expect(damaged.response == .malformed)
      #expect(throws: BodyError.self) { try server.requests(of: 1, as: Note.self) }
      #expect(try await server.waitForRequest(of: 1, as: Note.self) == Note(1))
      await server.stop()
    }
  }
}
