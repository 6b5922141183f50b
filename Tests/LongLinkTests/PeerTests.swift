// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Testing

/// A client and a server whose peers keep to the wire in their own way, or do not.
@Suite struct PeerTests {
  @Test(arguments: TestEnvironment.allCases)
  func `a repeated and an unexpected response are dropped and counted`(
    _ environment: TestEnvironment
  )
    async throws
  {
    try await Stage.run(environment) { stage in
      let (server, client) = try await stage.scripted()
      server.on(1, .replyTwice([7]))
      server.on(2, [.wrongSerial([8]), .reply([9])])
      #expect(try await client.request(1, [1]) == [7])
      let lost = client.submit(2, [1], options: RequestOptions(cancelsAtPeer: false))
      #expect(try await client.request(2, [2]) == [9])
      #expect(await lost.state == .waiting)
      lost.cancel()
      _ = try await failure { try await lost.value }
      #expect(await client.counters().requests.lateReplies == 2)
      #expect(server.connectionsAccepted == 1)
      #expect(server.cancels == [])
      await server.stop()
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `damage ends the connection and says so`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let (server, client) = try await stage.scripted()
      server.on(1, [.corruptChecksum([1]), .reply([2])])
      server.on(2, [.cutFrame([1, 2, 3, 4], afterBytes: 18), .reply([3])])
      server.on(3, .never)
      let bystander = client.submit(3, [1])
      _ = try await server.waitForRequest(of: 3)
      let damaged = try await failure { try await client.request(1, [1]) }
      #expect(damaged.code == .corrupted && damaged.delivery == .sent)
      let other = try await failure { try await bystander.value }
      #expect(other.code == .corrupted && other.delivery == .sent)
      #expect(try await client.request(1, [1]) == [2])
      let cut = try await failure { try await client.request(2, [1]) }
      #expect(cut.code == .protocolViolation && cut.delivery == .sent)
      #expect(try await client.request(2, [1]) == [3])
      let counters = await client.counters()
      #expect(counters.violations == ["checksumMismatch": 1, "truncatedFrame": 1])
      #expect(counters.connects == 3)
      await server.stop()
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `refusals say that nothing ran, whatever their code`(_ environment: TestEnvironment)
    async throws
  {
    try await Stage.run(environment) { stage in
      let (server, client) = try await stage.scripted()
      for code: ResponseCode in [.draining, .overloaded, .tooLarge, .unknownType, 4_711] {
        server.on(1, .refuse(code, "no"))
        server.on(2, .reply(code: code, body: Array("no".utf8)))
        let refused = try await failure {
          try await client.request(1, [1], options: RequestOptions(retry: .never))
        }
        #expect(refused.code == .rejected && refused.response == code)
        #expect(refused.delivery == .refused)
        let answered = try await failure { try await client.request(2, [1]) }
        #expect(answered.code == .rejected && answered.response == code)
        #expect(answered.delivery == .answered)
      }
      #expect(server.connectionsAccepted == 1)
      await server.stop()
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a connect whose handshake comes to nothing fails`(_ environment: TestEnvironment)
    async throws
  {
    try await Stage.run(environment) { stage in
      let (server, client) = try await stage.scripted()
      for handshake: ServerHandshake in [.close, .reset, .frames([.pong([1]), .response(to: 7)])] {
        server.handshake = handshake
        let error = try await failure { try await client.connect() }
        #expect(error.code == .connectFailed)
        #expect(error.delivery == .notSent)
      }
      server.handshake = .normal
      server.on(1, .reply([1]))
      #expect(try await client.request(1, [1]) == [1])
      await server.stop()
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a server that resets loses what it had`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let (server, client) = try await stage.scripted()
      for action: ServerAction in [.reset, .close, .end] {
        server.on(1, [action, .reply([1])])
        let error = try await failure { try await client.request(1, [1]) }
        #expect(error.code == .connectionLost && error.delivery == .sent)
        #expect(try await client.request(1, [1]) == [1])
      }
      await server.stop()
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `requests beyond the limit are refused with 429`(_ environment: TestEnvironment) async throws
  {
    try await Stage.run(environment) { stage in
      let server = try await stage.serve(configure: { $0.limits.maxInFlight = 2 })
      let peer = try await SimulatedClient.connect(
        to: server.addresses[0], on: stage.clientLoop)
      #expect(try await peer.sayHello().maxInFlight == 2)
      peer.send((100..<104).map { .request(.hang, serial: $0) })
      for serial: UInt32 in [102, 103] {
        let response = try await peer.waitForResponse(to: serial)
        #expect(response.code == .overloaded && response.isRefused)
      }
      #expect(await server.counters().requestsRunning == 2)
      #expect(await server.counters().connections.handled == 2)
      peer.close()
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a peer without a hello is served`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let peers = Tally<Peer>()
      let server = try await stage.serve { server in
        server.routeBasics()
        server.onConnect { peers.add($0) }
      }
      let peer = try await SimulatedClient.connect(
        to: server.addresses[0], on: stage.clientLoop)
      #expect(try await peer.request(.echo, [1, 2]).body == [1, 2])
      await peers.reached(1)
      let asking = stage.spawn { try await peers.elements[0].request(20, [3]) }
      let question = try await peer.waitForFrame(.request)
      #expect(question.body == [3] && !question.hasMetadata)
      peer.send(.response(to: question.serial, [4]))
      #expect(try await asking.value == [4])
      peer.close()
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a violation ends its connection and no other`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let cancelled = Latch()
      let server = try await stage.serve { server in
        server.route(.echo) { $0.body }
        server.route(.hang) { request in
          do {
            try await request.clock.sleep(for: .seconds(1_000_000))
          } catch {
            cancelled.open()
            throw error
          }
          return request.body
        }
      }
      let other = try stage.client(of: server)
      try await other.connect()
      let running = try await stage.hang(other, on: server, [1])
      let peer = try await SimulatedClient.connect(
        to: server.addresses[0], on: stage.clientLoop)
      try await peer.sayHello()
      peer.send(.request(.hang, serial: 60))
      try await stage.until { await server.counters().requestsRunning == 2 }
      peer.send(bytes: WireFrame.request(.echo, serial: 61, [1]).corruptBytes)
      let goaway = try await peer.waitForFrame(.goaway)
      #expect(goaway.goAwayFields?.code == .malformed)
      #expect(goaway.goAwayFields?.requestsAccepted == 1)
      _ = try await peer.waitForEnd()
      await cancelled.wait()
      #expect(try await other.request(.echo, [1]) == [1])
      #expect(await running.state == .waiting)
      #expect(await server.counters().violations == ["checksumMismatch": 1])
      running.cancel()
    }
  }

  @Test func `a server that freezes is found within the bound`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await SimulatedServer.start(
        on: stage.serverLoop, at: .ipv4(127, 0, 0, 1, port: 0))
      let client = try stage.client(to: [server.endpoint]) {
        $0.heartbeat = Heartbeat(interval: .seconds(4), timeout: .seconds(2))
      }
      server.on(1, [.reply([1]), .freeze])
      #expect(try await client.request(1, [1]) == [1])
      let asked = simulation.now
      let error = try await failure {
        try await client.request(1, [2], options: RequestOptions(timeout: .seconds(100)))
      }
      #expect(error.code == .connectionLost && error.delivery == .sent)
      #expect(error.closeReason == .heartbeatLost)
      #expect(asked.duration(to: simulation.now) <= .seconds(6) + .milliseconds(5))
      server.thaw()
      await server.stop()
    }
  }
}
