// SPDX-License-Identifier: Apache-2.0

import LongLinkTesting
import Testing

/// Each action of a scripted server, as a scripted client sees it on the wire.
@Suite struct ServerActionTests {
  private static let worlds = TestEnvironment.allCases

  @Test(arguments: worlds)
  func `replies, codes and refusals reach the client`(environment: TestEnvironment) async throws {
    try await environment.runPair { server, client in
      server.on(1) { request in .reply(request.body.reversed()) }
      server.on(2, .reply(code: 1_234, body: [9]))
      server.on(3, .refuse(.overloaded, "later"))
      server.on(4, .reply(text: "hello"))
      let echoed = try await client.request(1, [1, 2, 3])
      #expect(echoed.code == .ok)
      #expect(echoed.body == [3, 2, 1])
      let own = try await client.request(2)
      #expect(own.code == 1_234 && !own.isRefused && own.body == [9])
      let refused = try await client.request(3)
      #expect(refused.code == .overloaded && refused.isRefused && refused.text == "later")
      let text = try await client.request(4)
      #expect(text.text == "hello")
      let unknown = try await client.request(99)
      #expect(unknown.code == .unknownType && unknown.isRefused)
      #expect(server.requests.map(\.type) == [1, 2, 3, 4, 99])
    }
  }

  @Test(arguments: worlds)
  func `a list of actions is used in order, and its last one repeats`(
    environment: TestEnvironment
  ) async throws {
    try await environment.runPair { server, client in
      server.on(1, [.never, .reply([1]), .reply([2])])
      client.send(.request(1, serial: 1_000))
      for expected: [UInt8] in [[1], [2], [2]] {
        let response = try await client.request(1)
        #expect(response.body == expected)
      }
      #expect(client.responses.allSatisfy { $0.serial != 1_000 })
      #expect(server.requests(of: 1).map(\.number) == [1, 2, 3, 4])
    }
  }

  @Test(arguments: worlds)
  func `wrong responses are wrong as specified`(environment: TestEnvironment)
    async throws
  {
    try await environment.runPair { server, client in
      server.on(1, .replyTwice([1]))
      server.on(2, .wrongSerial([2]))
      server.on(3, .corruptChecksum([3]))
      client.send([.request(1, serial: 50), .request(2, serial: 51), .request(3, serial: 52)])
      try await client.waitForFrame(.response, count: 4)
      let received = client.received
      #expect(received.map(\.frame.serial) == [50, 50, 1_000_051, 52])
      #expect(received.map(\.isIntact) == [true, true, true, false])
      #expect(received[3].frame.body == [3])
    }
  }

  @Test(arguments: worlds)
  func `a frame is cut at the specified byte`(environment: TestEnvironment) async throws {
    try await environment.runPair { server, client in
      server.on(1, .cutFrame([1, 2, 3, 4], afterBytes: 18))
      await #expect(throws: ConnectionEndedError.self) { try await client.request(1) }
      let ending = try await client.waitForEnd()
      #expect(ending.reason == .endedByPeer)
      #expect(ending.unfinishedBytes == 18)
    }
  }

  @Test(arguments: worlds)
  func `a dribbled answer is whole in the end, and the next one waits for it`(
    environment: TestEnvironment
  ) async throws {
    try await environment.runPair { server, client in
      server.on(1, .dribble([1, 2, 3], every: .milliseconds(2)))
      server.on(2, .reply())
      client.send([.request(1, serial: 50), .request(2, serial: 51)])
      try await client.waitForFrame(.response, count: 2)
      #expect(client.responses.map(\.serial) == [50, 51])
      #expect(client.responses[0].body == [1, 2, 3])
      // Nineteen bytes are sent with eighteen pauses between them.
      let took = server.requests[0].time.duration(to: client.responses[0].time)
      #expect(took >= .milliseconds(36))
    }
  }

  @Test(arguments: worlds)
  func `held responses are sent together, in the specified order`(
    environment: TestEnvironment
  ) async throws {
    try await environment.runPair { server, client in
      server.on(1, .hold(untilThereAre: 3, order: .reversed, .reply()))
      server.on(2, .hold(untilThereAre: 3, order: .asReceived, .reply()))
      server.on(3, .hold(untilThereAre: 8, order: .shuffled, .reply()))
      server.on(4, .hold(untilThereAre: 100, .reply()))
      client.send((50..<53).map { .request(1, serial: $0) })
      client.send((53..<56).map { .request(2, serial: $0) })
      client.send((56..<64).map { .request(3, serial: $0) })
      client.send((64..<66).map { .request(4, serial: $0) })
      try await server.waitForRequest(of: 4, count: 2)
      server.releaseHeld()
      try await client.waitForFrame(.response, count: 16)
      let serials = client.responses.map(\.serial)
      #expect(serials[..<6] == [52, 51, 50, 53, 54, 55])
      #expect(Set(serials[6..<14]) == Set(56..<64))
      #expect(serials[14...] == [64, 65])
    }
  }

  @Test(arguments: worlds)
  func `fragments are joined again in both directions`(environment: TestEnvironment) async throws {
    try await environment.runPair { server, client in
      server.on(1) { .replyInFragments($0.body, of: 7) }
      let body = (0..<100).map { UInt8($0) }
      let request = WireFrame.request(1, serial: 50, body, metadata: WireMetadata(priority: 4))
      client.send(request.fragments(of: 11))
      let response = try await client.waitForResponse(to: 50)
      #expect(response.body == body)
      #expect(client.record.frames(of: .response).count == 15)
      #expect(server.requests[0].body == body)
      #expect(server.requests[0].metadata?.priority == 4)
    }
  }

  @Test(arguments: worlds)
  func `pushes and questions come from an action`(environment: TestEnvironment) async throws {
    try await environment.runPair { server, client in
      server.on(1, .sequence([.push(5, [1]), .ask(6, [2]), .reply()]))
      _ = try await client.request(1)
      let question = try #require(client.record.requests.first)
      #expect(client.pushes.map(\.type) == [5])
      #expect(question.type == 6 && question.body == [2])
      #expect(question.serial == 0x8000_0032)
      client.send(.response(to: question.serial, [7]))
      try await server.wait { $0.responses.map(\.body) == [[7]] }
    }
  }

  @Test(arguments: worlds)
  func `goaway, end, close and reset end a connection in their ways`(
    environment: TestEnvironment
  ) async throws {
    try await environment.run { loop, address in
      let server = try await SimulatedServer.start(on: loop, at: address)
      server.on(1, .sequence([.reply(), .goAway(reason: "night", spread: .seconds(3)), .end]))
      server.on(2, .sequence([.reply(), .close]))
      server.on(3, .reset)
      for type in [1, 2, 3] as [MessageType] {
        let client = try await SimulatedClient.connect(to: server.address, on: loop)
        client.send(.request(type, serial: 50))
        let ending = try await client.waitForEnd()
        #expect(ending.reason == (type == 3 ? environment.resetReason : .endedByPeer))
        #expect(client.responses.count == (type == 3 ? 0 : 1))
        let goAway = client.record.frames(of: .goaway).first?.goAwayFields
        #expect(goAway?.requestsAccepted == (type == 1 ? 1 : nil))
        #expect(goAway?.reason == (type == 1 ? "night" : nil))
        #expect(goAway?.spread == (type == 1 ? .seconds(3) : nil))
        client.close()
      }
      try await server.waitForEndings(3)
      await server.stop()
    }
  }

  @Test(arguments: worlds)
  func `goaway counts requests from their first fragment on`(environment: TestEnvironment)
    async throws
  {
    try await environment.runPair { server, client in
      let parts = WireFrame.request(1, serial: 60, [1, 2, 3]).fragments(of: 1)
      server.on(1, .goAway())
      client.send(Array(parts.dropLast()))
      client.send(.request(1, serial: 50))
      try await client.waitForFrame(.goaway)
      client.send(parts[2])
      try await client.waitForFrame(.goaway, count: 2)
      #expect(client.record.frames(of: .goaway).map(\.goAwayFields?.requestsAccepted) == [2, 2])
    }
  }

  @Test(arguments: [TestEnvironment.simulated, .loopback])
  func `a server that stopped reading answers nothing until it resumes`(
    environment: TestEnvironment
  ) async throws {
    try await environment.runPair { server, client in
      server.on(1, [.sequence([.reply(), .stopReading]), .reply()])
      _ = try await client.request(1)
      client.send(.ping([1]))
      server.push(9)
      try await client.waitForFrame(.push)
      #expect(client.record.frames(of: .pong) == [])
      server.resumeReading()
      try await client.waitForFrame(.pong)
    }
  }
}
