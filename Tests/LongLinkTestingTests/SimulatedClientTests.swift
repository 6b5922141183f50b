// SPDX-License-Identifier: Apache-2.0

import LongLinkTesting
import Testing

/// What a scripted client can be ordered to do, as a scripted server sees it.
@Suite struct SimulatedClientTests {
  private static let worlds = TestEnvironment.allCases

  @Test(arguments: worlds)
  func `a dribbled request arrives whole, and the next frame after it`(
    environment: TestEnvironment
  ) async throws {
    try await environment.runPair { server, client in
      server.on(1, .reply())
      client.dribble(WireFrame.request(1, serial: 50, [1, 2]).bytes, every: .milliseconds(1))
      client.send(.request(1, serial: 51))
      try await client.waitForFrame(.response, count: 2)
      #expect(server.requests.map(\.serial) == [50, 51])
      #expect(server.requests[0].body == [1, 2])
    }
  }

  @Test(arguments: worlds)
  func `half a frame and an end of the stream are recognized`(environment: TestEnvironment)
    async throws
  {
    try await environment.runPair { server, client in
      client.send(bytes: Array(WireFrame.request(1, serial: 50, [1, 2]).bytes.dropLast()))
      client.halfClose()
      let endings = try await server.waitForEndings(1)
      #expect(endings.map(\.reason) == [.endedByPeer])
      #expect(endings.map(\.unfinishedBytes) == [17])
      let ending = try await client.waitForEnd()
      #expect(ending.reason == .endedByPeer)
    }
  }

  @Test(arguments: worlds)
  func `a reset is seen as one`(environment: TestEnvironment) async throws {
    try await environment.runPair { server, client in
      try await server.waitForConnections(1)
      client.reset()
      let endings = try await server.waitForEndings(1)
      #expect(endings.map(\.reason) == [environment.resetReason])
      let ending = try await client.waitForEnd()
      #expect(ending.reason == .closedHere)
    }
  }

  @Test(arguments: worlds)
  func `a client that is released closes`(environment: TestEnvironment) async throws {
    try await environment.run { loop, address in
      let server = try await SimulatedServer.start(on: loop, at: address)
      var client: SimulatedClient? = try await SimulatedClient.connect(
        to: server.address,
        on: loop
      )
      try await server.waitForConnections(1)
      #expect(client != nil)
      client = nil
      let endings = try await server.waitForEndings(1)
      #expect(endings.map(\.reason) == [.endedByPeer])
      await server.stop()
    }
  }

  @Test(arguments: worlds)
  func `a client answers pings unless told otherwise`(environment: TestEnvironment) async throws {
    try await environment.runPair { server, client in
      try await server.waitForConnections(1)
      server.send(.ping([1]))
      try await server.wait { !$0.frames(of: .pong).isEmpty }
      client.answersPings = false
      server.send(.ping([2]))
      try await client.waitForFrame(.ping, count: 2)
      client.send(.push(1))
      try await server.waitForPush(of: 1)
      #expect(server.record.frames(of: .pong).map(\.body) == [[1]])
    }
  }

  @Test(arguments: [TestEnvironment.simulated, .simulatedByteByByte])
  func `a client that does not read makes the server wait`(environment: TestEnvironment)
    async throws
  {
    try await environment.runPair { server, client in
      try await server.waitForConnections(1)
      client.stopReading()
      server.send(bytes: [UInt8](repeating: 0, count: 1_000_000))
      server.closeConnections()
      try await server.loop.sleep(for: .seconds(3_600))
      #expect(server.record.endings.isEmpty)
      client.close()
      let endings = try await server.waitForEndings(1)
      #expect(endings.map(\.reason) != [.closedHere])
    }
  }
}
