// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Testing

/// Deadlines cover everything from a request's creation on.
@Suite struct DeadlineTests {
  /// The virtual time that a body takes.
  private func time(
    _ simulation: Simulation,
    _ body: () async throws -> Void
  ) async throws -> Duration {
    let began = simulation.now
    try await body()
    return began.duration(to: simulation.now)
  }

  /// Timers fire on whole milliseconds, less than two of them late.
  private func expect(
    _ duration: Duration,
    is expected: Duration,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(
      duration >= expected && duration < expected + .milliseconds(3),
      sourceLocation: sourceLocation
    )
  }

  @Test func `a request that waits for a connection`() async throws {
    try await Stage.simulate { stage, simulation in
      simulation.network.connects = .refused
      let client = try stage.client(to: [.host("10.0.0.1", port: 80)])
      let duration = try await time(simulation) {
        let error = try await failure {
          try await client.request(.echo, [1], options: RequestOptions(timeout: .seconds(5)))
        }
        #expect(error.code == .deadlineExceeded)
        #expect(error.delivery == .notSent)
      }
      expect(duration, is: .seconds(5))
      #expect(await client.counters().requests.expired == 1)
    }
  }

  @Test func `the client's own deadline applies if a request has none`() async throws {
    try await Stage.simulate { stage, simulation in
      let client = try stage.client(of: try await stage.serve()) {
        $0.timeouts.request = .seconds(3)
      }
      try await client.connect()
      let duration = try await time(simulation) {
        let error = try await failure { try await client.request(.hang, [1]) }
        #expect(error.code == .deadlineExceeded)
        #expect(error.delivery == .sent)
      }
      expect(duration, is: .seconds(3))
    }
  }

  @Test func `a request that waits for room`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(configure: { $0.limits.maxInFlight = 2 })
      let client = try stage.client(of: server)
      try await client.connect()
      let long = RequestOptions(timeout: .seconds(1_000))
      let running = [
        client.submit(.hang, [1], options: long), client.submit(.hang, [2], options: long),
      ]
      try await simulation.sleep(for: .milliseconds(10))
      let duration = try await time(simulation) {
        let error = try await failure {
          try await client.request(.echo, [3], options: RequestOptions(timeout: .seconds(1)))
        }
        #expect(error.code == .deadlineExceeded)
        #expect(error.delivery == .notSent)
      }
      expect(duration, is: .seconds(1))
      #expect(await server.counters().connections.requestsReceived == 2)
      // Room that appears in time is used.
      let late = client.submit(.echo, [4], options: RequestOptions(timeout: .seconds(5)))
      try await simulation.sleep(for: .seconds(1))
      #expect(await late.state == .created)
      running[0].cancel()
      #expect(try await late.value == [4])
    }
  }

  @Test func `the server's handler is cancelled at the deadline and knows it`() async throws {
    let ended = Tally<Duration>()
    let left = Tally<Duration>()
    try await Stage.serving { server in
      server.route(.hang) { request in
        let began = request.clock.now
        left.add(began.duration(to: request.deadline!))
        defer { ended.add(began.duration(to: request.clock.now)) }
        try await request.clock.sleep(for: .seconds(100))
        return request.body
      }
    } _: { stage, server, client in
      try await client.connect()
      let error = try await failure {
        try await client.request(.hang, [1], options: RequestOptions(timeout: .seconds(2)))
      }
      #expect(error.code == .deadlineExceeded)
      await ended.reached(1)
      #expect(left.elements[0] <= .seconds(2) && left.elements[0] > .milliseconds(1_990))
      #expect(ended.elements[0] <= .seconds(2) + .milliseconds(3))
      try await stage.clientLoop.sleep(for: .milliseconds(10))
      let counters = await server.counters()
      #expect(counters.requestsRunning == 0)
      #expect(counters.connections.handlersLate == 1)
    }
  }

  @Test(arguments: [[], WireFeatures.metadata], [true, false])
  func `a server gets a cancel at the deadline if it cannot know the deadline`(
    features: WireFeatures, cancelsAtPeer: Bool
  ) async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await SimulatedServer.start(
        on: stage.serverLoop, at: .ipv4(10, 0, 0, 1, port: 4000))
      server.handshake = .welcome(features: features)
      server.on(.hang, .never)
      let client = try stage.client(to: [.host("10.0.0.1", port: 4000)])
      try await client.connect()
      let options = RequestOptions(timeout: .seconds(2), cancelsAtPeer: cancelsAtPeer)
      _ = try await failure { try await client.request(.hang, [1], options: options) }
      try await simulation.sleep(for: .seconds(1))
      let isTold = features.isEmpty && cancelsAtPeer
      #expect(server.cancels.count == (isTold ? 1 : 0))
      #expect(
        server.requests(of: .hang)[0].metadata?.remaining == (features.isEmpty ? nil : .seconds(2)))
      await server.stop()
    }
  }

  /// The metadata that would tell the time are left out where the body needs all of the room.
  @Test(arguments: [false, true], [900, 1_000])
  func `a server that was not told the deadline gets a cancel when it passes`(
    isConnected: Bool, size: Int
  ) async throws {
    try await Stage.pair(server: { $0.limits.maxBody = 1_000 }) { stage, server, client in
      if isConnected { try await client.connect() }
      let error = try await failure {
        try await client.request(
          .hang, [UInt8](repeating: 1, count: size), options: RequestOptions(timeout: .seconds(2)))
      }
      #expect(error.code == .deadlineExceeded && error.delivery == .sent)
      try await stage.clientLoop.sleep(for: .milliseconds(10))
      let counters = await server.counters()
      #expect(counters.requestsRunning == 0)
      #expect(counters.connections.cancelsReceived == (size == 1_000 ? 1 : 0))
      #expect(counters.connections.handlersLate == (size == 1_000 ? 0 : 1))
    }
  }

  @Test func `a request that arrives after its time is refused`() async throws {
    try await Stage.simulate { stage, simulation in
      let handled = Tally<Void>()
      let server = try await stage.serve { server in
        server.route(.echo) { request in
          handled.add(())
          return request.body
        }
      }
      let peer = try await SimulatedClient.connect(
        to: server.addresses[0],
        on: stage.clientLoop
      )
      try await peer.sayHello()
      let late = try await peer.request(.echo, [1], metadata: WireMetadata(remaining: .zero))
      #expect(late.code == .deadlinePassed && late.isRefused)
      peer.close()
      #expect(handled.count == 0)
      #expect(await server.counters().connections.refused == 1)
    }
  }

  @Test func `a response tells whether the handler made it`() async throws {
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve { server in
        server.routeBasics()
        server.route(5) { _ in throw Rejection(.deadlinePassed) }
      }
      let peer = try await SimulatedClient.connect(to: server.addresses[0], on: stage.clientLoop)
      try await peer.sayHello()
      let metadata = WireMetadata(remaining: .seconds(1))
      let given = try await peer.request(.hang, [], metadata: metadata)
      let thrown = try await peer.request(5, [], metadata: metadata)
      for response in [given, thrown] {
        #expect(response.code == .deadlinePassed && !response.isRefused)
      }
      #expect(given.metadata?.interrupted == true && thrown.metadata?.interrupted != true)
      peer.close()
    }
  }

  @Test(arguments: [ResponseCode.unauthenticated, .deadlinePassed, .overloaded, .draining, 1_000])
  func `only the handler's own response is an answer`(_ code: ResponseCode) async throws {
    try await Stage.simulate { stage, _ in
      let server = try await SimulatedServer.start(
        on: stage.serverLoop, at: .ipv4(10, 0, 0, 1, port: 4_000))
      for isInterrupted in [false, true] {
        server.on(
          isInterrupted ? 2 : 1,
          .frame {
            .response(
              to: $0.serial, code: code,
              metadata: isInterrupted ? WireMetadata(interrupted: true) : nil)
          })
      }
      let client = try stage.client(to: [.host("10.0.0.1", port: 4_000)])
      for (type, delivery) in [(1, .answered), (2, .sent)] as [(MessageType, Delivery)] {
        let error = try await failure { try await client.request(type, []) }
        #expect(error.code == .rejected && error.response == code, "\(error)")
        #expect(error.delivery == delivery, "\(error)")
      }
      await server.stop()
    }
  }

  @Test(arguments: [Duration.zero, .seconds(-5)])
  func `a request without time left is never sent`(_ timeout: Duration) async throws {
    try await Stage.pair { _, server, client in
      try await client.connect()
      let error = try await failure {
        try await client.request(.echo, [1], options: RequestOptions(timeout: timeout))
      }
      #expect(error.code == .deadlineExceeded)
      #expect(error.delivery == .notSent)
      #expect(await server.counters().connections.requestsReceived == 0)
    }
  }

  @Test func `thousands of deadlines pass in their order`() async throws {
    try await Stage.simulate { stage, simulation in
      let client = try stage.client(of: try await stage.serve()) { $0.limits.maxWaiting = 5_000 }
      try await client.connect()
      let order = Tally<Int>()
      let delays = (0..<3_000).map { _ in Int(simulation.random(in: 1...60_000)) }
      for delay in delays {
        client.request(
          .hang,
          [1],
          options: RequestOptions(timeout: .milliseconds(delay)),
          on: .connectionLoop
        ) { _ in order.add(delay) }
      }
      await order.reached(3_000)
      #expect(order.elements == delays.sorted())
    }
  }
}
