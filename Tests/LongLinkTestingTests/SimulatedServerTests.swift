// SPDX-License-Identifier: Apache-2.0

import LongLinkTesting
import Testing

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// What a scripted server does by itself, what it can be ordered to do, and what it remembers.
@Suite struct SimulatedServerTests {
  private static let worlds = TestEnvironment.allCases

  @Test(arguments: worlds)
  func `a hello is answered with what both sides have`(environment: TestEnvironment) async throws {
    try await environment.runPair { server, client in
      let hello = WireFrame.hello(
        features: [.metadata, WireFeatures(rawValue: 1 << 40)],
        heartbeatInterval: .seconds(7),
        credential: [4, 2],
        name: "tester"
      )
      let welcome = try await client.sayHello(hello)
      #expect(welcome.features == .metadata)
      #expect(welcome.heartbeatInterval == .seconds(7))
      #expect(server.hellos.map(\.name) == ["tester"])
      #expect(server.hellos.map(\.credential) == [[4, 2]])
    }
  }

  @Test(arguments: worlds)
  func `a handshake can be refused, closed, reset or answered with anything`(
    environment: TestEnvironment
  ) async throws {
    try await environment.run { loop, address in
      let server = try await SimulatedServer.start(on: loop, at: address)
      let handshakes: [(ServerHandshake, ConnectionEnding.Reason?)] = [
        (.refuse(.unauthenticated, "who?"), .endedByPeer), (.close, .endedByPeer),
        (.reset, environment.resetReason), (.frames([.welcome(maxBody: 77)]), nil),
      ]
      for (handshake, reason) in handshakes {
        server.handshake = handshake
        let client = try await SimulatedClient.connect(to: server.address, on: loop)
        if let reason {
          client.send(.hello())
          let ending = try await client.waitForEnd()
          #expect(ending.reason == reason)
        } else {
          let welcome = try await client.sayHello()
          #expect(welcome.maxBody == 77)
        }
        client.close()
      }
      await server.stop()
    }
  }

  @Test(arguments: worlds)
  func `a silent handshake leaves the rest working`(environment: TestEnvironment) async throws {
    try await environment.runPair { server, client in
      server.handshake = .silent
      client.send([.hello(), .ping([1, 2])])
      let pong = try await client.waitForFrame(.pong)
      #expect(pong.body == [1, 2])
      #expect(client.record.frames(of: .welcome) == [])
    }
  }

  @Test(arguments: worlds)
  func `pings are answered unless told otherwise`(environment: TestEnvironment) async throws {
    try await environment.runPair { server, client in
      server.on(1, .reply())
      server.answersPings = false
      client.send(.ping([1]))
      _ = try await client.request(1)
      #expect(client.record.frames(of: .pong) == [])
      server.answersPings = true
      client.send(.ping([2]))
      let pong = try await client.waitForFrame(.pong)
      #expect(pong.body == [2])
    }
  }

  @Test(arguments: worlds)
  func `the server asks, and gets the answer`(environment: TestEnvironment) async throws {
    try await environment.runPair { server, client in
      try await server.waitForConnections(1)
      async let answer = server.ask(5, [1])
      try await client.wait { $0.requests.count == 1 }
      client.send(.response(to: client.record.requests[0].serial, code: 1_000, [8]))
      let response = try await answer
      #expect(response.code == 1_000 && response.body == [8])
    }
  }

  @Test(arguments: worlds)
  func `a question fails when its connection ends, or is not there`(
    environment: TestEnvironment
  ) async throws {
    try await environment.runPair { server, client in
      try await server.waitForConnections(1)
      async let answer = server.ask(5)
      try await client.waitForFrame(.request)
      client.close()
      do {
        _ = try await answer
        Issue.record("there is no answer")
      } catch let error as ConnectionEndedError {
        #expect(error.ending?.reason == .endedByPeer)
      }
      // Neither without nor with its number is there a connection now. There was never a second.
      for (connection, reason) in [(nil, .endedByPeer), (1, .endedByPeer), (2, nil)]
        as [(Int?, ConnectionEnding.Reason?)]
      {
        let error = await #expect(throws: ConnectionEndedError.self) {
          try await server.ask(5, on: connection)
        }
        #expect(error?.ending?.reason == reason)
      }
    }
  }

  @Test(arguments: worlds)
  func `pushes go to all connections or to one`(environment: TestEnvironment) async throws {
    try await environment.run { loop, address in
      let server = try await SimulatedServer.start(on: loop, at: address)
      let first = try await SimulatedClient.connect(to: server.address, on: loop)
      let second = try await SimulatedClient.connect(to: server.address, on: loop)
      try await server.waitForConnections(2)
      server.push(1, [1], to: 1)
      server.push(2, [2])
      try await first.waitForFrame(.push, count: 2)
      try await second.waitForFrame(.push)
      #expect(first.pushes.map(\.type) == [1, 2])
      #expect(second.pushes.map(\.type) == [2])
      await server.stop()
      let firstEnding = try await first.waitForEnd()
      #expect(firstEnding.reason == .endedByPeer)
      let secondEnding = try await second.waitForEnd()
      #expect(secondEnding.reason == .endedByPeer)
    }
  }

  @Test(arguments: worlds)
  func `requests, cancels, metadata and damage are remembered in order`(
    environment: TestEnvironment
  ) async throws {
    try await environment.runPair { server, client in
      server.on(1, .never)
      let metadata = WireMetadata(
        remaining: .milliseconds(1_500),
        priority: 3,
        idempotencyKey: [1, 2],
        entries: ["b": "2", "a": "1"]
      )
      client.send(.request(1, serial: 50, [1], metadata: metadata))
      client.send(bytes: WireFrame.request(1, serial: 51).corruptBytes)
      client.send([.cancel(50), .push(6, [2]), WireFrame(.init(rawValue: 0x3F), serial: 9)])
      try await server.wait { $0.frames.count == 5 }
      #expect(
        server.received.map(\.frame.kind) == [
          .request, .request, .cancel, .push, WireFrame.Kind(rawValue: 0x3F),
        ]
      )
      #expect(server.received.map(\.isIntact) == [true, false, true, true, true])
      #expect(server.requests.map(\.serial) == [50])
      #expect(server.requests.first?.metadata == metadata)
      #expect(server.cancels == [50])
      #expect(server.pushes.map(\.body) == [[2]])
      let push = try await server.waitForPush(of: 6)
      #expect(push.body == [2])
    }
  }

  @Test(arguments: worlds)
  func `a large body and a slow reader lose nothing`(environment: TestEnvironment) async throws {
    let body = [UInt8](
      repeating: 7, count: environment == .simulatedByteByByte ? 10_000 : 3_000_000)
    try await environment.runPair { server, client in
      server.on(1, .reply(body))
      client.stopReading()
      client.send(.request(1, serial: 50))
      try await server.waitForRequest(of: 1)
      client.resumeReading()
      let response = try await client.waitForResponse(to: 50)
      #expect(response.body == body)
    }
  }

  @Test(arguments: worlds)
  func `a frozen server accepts and answers nothing until it thaws`(
    environment: TestEnvironment
  ) async throws {
    try await environment.runPair { server, client in
      server.on(1, .reply())
      try await server.waitForConnections(1)
      server.freeze()
      client.send([.ping(), .request(1, serial: 50)])
      let late = try await SimulatedClient.connect(to: server.address, on: server.loop)
      late.send(.ping())
      if environment.isSimulated { try await server.loop.sleep(for: .seconds(20)) }
      #expect(client.received.isEmpty && late.received.isEmpty)
      #expect(server.connectionsAccepted == 1)
      server.thaw()
      try await client.waitForFrame(.response)
      try await late.waitForFrame(.pong)
      late.close()
    }
  }

  @Test(arguments: worlds)
  func `connections can be closed and reset while listening goes on`(
    environment: TestEnvironment
  ) async throws {
    try await environment.run { loop, address in
      let server = try await SimulatedServer.start(on: loop, at: address)
      let reasons: [ConnectionEnding.Reason] = [.endedByPeer, environment.resetReason]
      for (index, reason) in reasons.enumerated() {
        let client = try await SimulatedClient.connect(to: server.address, on: loop)
        try await server.waitForConnections(index + 1)
        if index == 0 { server.closeConnections() } else { server.resetConnections() }
        let ending = try await client.waitForEnd()
        #expect(ending.reason == reason)
        client.close()
      }
      await server.stop()
    }
  }

  @Test(arguments: worlds)
  func `stopping ends waits, and so does cancelling`(environment: TestEnvironment) async throws {
    try await environment.run { loop, address in
      let server = try await SimulatedServer.start(on: loop, at: address)
      let cancelled = Task(executorPreference: loop) { try await server.waitForRequest(of: 1) }
      cancelled.cancel()
      await #expect(throws: CancellationError.self) { try await cancelled.value }
      let stopped = Task(executorPreference: loop) { try await server.waitForRequest(of: 1) }
      await server.stop()
      await #expect(throws: CancellationError.self) { try await stopped.value }
    }
  }

  @Test(arguments: worlds)
  func `an address that is taken is an error`(environment: TestEnvironment) async throws {
    try await environment.run { loop, address in
      let server = try await SimulatedServer.start(on: loop, at: address)
      let error = await #expect(throws: SocketError.self) {
        try await SimulatedServer.start(on: loop, at: server.address)
      }
      #expect(error?.errno == EADDRINUSE)
      await server.stop()
      // Another test may listen on the port by now.
      guard environment != .loopback else { return }
      await #expect(throws: SocketError.self) {
        try await SimulatedClient.connect(to: server.address, on: loop)
      }
    }
  }

  @Test func `delays take virtual time in a simulation`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let server = try await SimulatedServer.start(on: simulation.mainLoop)
      server.on(1, .reply([1]), after: .seconds(7_200))
      let client = try await SimulatedClient.connect(
        to: server.address,
        on: simulation.eventLoop(named: "client")
      )
      let response = try await client.request(1)
      #expect(response.body == [1])
      #expect(simulation.now.nanoseconds >= 7_200_000_000_000)
      client.close()
      await server.stop()
    }
  }
}
