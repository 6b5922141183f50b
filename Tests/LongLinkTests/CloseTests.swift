// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Logging
import Testing

/// Closing a client.
@Suite struct CloseTests {
  @Test(arguments: TestEnvironment.allCases)
  func `closing ends every request once`(_ environment: TestEnvironment) async throws {
    try await Stage.pair(in: environment, server: { $0.limits.maxInFlight = 3 }) {
      stage, server, client in
      try await client.connect()
      let endings = Tally<(Int, Result<[UInt8], LongLinkError>)>()
      for number in 0..<10 {
        client.request(
          .hang,
          [1],
          options: RequestOptions(timeout: .seconds(1_000)),
          on: .connectionLoop
        ) { endings.add((number, $0)) }
      }
      try await stage.until { await server.counters().requestsRunning == 3 }
      await client.close()
      #expect(endings.count == 10)
      for (number, result) in endings.elements {
        let error = try await failure { try result.get() }
        #expect(error.code == .closed)
        #expect(error.delivery == (number < 3 ? .sent : .notSent))
      }
      #expect(Set(endings.elements.map(\.0)).count == 10)
      let late = try await failure { try await client.request(.echo, [1]) }
      #expect(late.code == .closed && late.delivery == .notSent)
      #expect(try await failure { try await client.connect() }.code == .closed)
      #expect(try await failure { try await client.ping() }.code == .closed)
      #expect(client.state == .closed)
      await client.close()
      // The server's handlers are cancelled.
      try await stage.until { await server.counters().connections.handlersAbandoned == 3 }
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `closing within a bound lets what is in flight finish`(_ environment: TestEnvironment)
    async throws
  {
    let (began, goOn) = (Tally<Void>(), Latch())
    try await Stage.serving(in: environment) { server in
      server.route(.echo) { request in
        began.add(())
        await goOn.wait()
        return request.body
      }
    } server: {
      $0.limits.maxInFlight = 2
    } _: { stage, server, client in
      try await client.connect()
      let tasks = (0..<4).map { client.submit(.echo, [UInt8($0)]) }
      await began.reached(2)
      let closing = stage.spawn { await client.close(within: .seconds(100)) }
      try await stage.until {
        (try? await client.ping()) == nil
      }
      let late = try await failure { try await client.request(.echo, [9]) }
      #expect(late.code == .closed && late.delivery == .notSent)
      goOn.open()
      for (index, task) in tasks.enumerated() {
        #expect(try await task.value == [UInt8(index)])
      }
      try await closing.value
      #expect(client.state == .closed)
      try await stage.until { await server.counters().openConnections == 0 }
      #expect(await server.counters().endings == ["closedByPeer": 1])
    }
  }

  @Test func `closing within a bound ends at the bound`() async throws {
    try await Stage.simulate { stage, simulation in
      let client = try stage.client(of: try await stage.serve())
      let task = client.submit(.hang, [1], options: RequestOptions(timeout: .seconds(1_000)))
      try await stage.until { await task.state == .waiting }
      let began = simulation.now
      await client.close(within: .seconds(5))
      let time = began.duration(to: simulation.now)
      #expect(time >= .seconds(5) && time < .seconds(5) + .milliseconds(5))
      let error = try await failure { try await task.value }
      #expect(error.code == .closed && error.delivery == .sent)
    }
  }

  @Test func `closing does not wait for output of a connection that has ended`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await SimulatedServer.start(on: stage.serverLoop)
      let client = try stage.client(to: [server.endpoint])
      try await client.connect()
      server.stopReading()
      let options = RequestOptions(timeout: .seconds(1_000))
      let task = client.submit(.echo, [UInt8](repeating: 1, count: 10_000_000), options: options)
      try await simulation.sleep(for: .seconds(1))
      let began = simulation.now
      let closing = stage.spawn { await client.close(within: .seconds(60)) }
      try await simulation.sleep(for: .milliseconds(10))
      server.resetConnections()
      await server.stop()
      try await closing.value
      #expect(began.duration(to: simulation.now) < .seconds(1))
      _ = try await failure { try await task.value }
    }
  }

  @Test func `a second close without a bound cuts the first short`() async throws {
    try await Stage.simulate { stage, simulation in
      let client = try stage.client(of: try await stage.serve())
      let task = client.submit(.hang, [1], options: RequestOptions(timeout: .seconds(1_000)))
      try await stage.until { await task.state == .waiting }
      let first = stage.spawn { await client.close(within: .seconds(50)) }
      try await simulation.sleep(for: .seconds(1))
      let now = simulation.now
      await client.close()
      try await first.value
      #expect(simulation.now == now)
      #expect(try await failure { try await task.value }.code == .closed)
    }
  }

  @Test func `closing needs no connection`() async throws {
    try await Stage.simulate { stage, simulation in
      let idle = try stage.client(to: [.host("10.0.0.1", port: 80)])
      await idle.close()
      #expect(idle.state == .closed)

      let resolving = try stage.client(to: [.host("slow.example", port: 80)])
      simulation.network.host("slow.example", addresses: [], delay: .seconds(100))
      let first = stage.spawn { try await failure { try await resolving.connect() } }
      try await simulation.sleep(for: .milliseconds(10))
      await resolving.close()
      #expect(try await first.value.code == .closed)

      simulation.network.connects = .ignored
      let connecting = try stage.client(to: [.host("10.0.0.1", port: 80)])
      let second = stage.spawn { try await failure { try await connecting.connect() } }
      try await simulation.sleep(for: .milliseconds(10))
      await connecting.close(within: .seconds(5))
      #expect(try await second.value.code == .closed)

      simulation.network.connects = .refused
      let waiting = try stage.client(to: [.host("10.0.0.1", port: 80)])
      _ = try await failure { try await waiting.connect() }
      let request = waiting.submit(.echo, [1])
      await waiting.close()
      #expect(try await failure { try await request.value }.code == .closed)
      #expect(simulation.now.nanoseconds < 1_000_000_000)
      // The look-up's answer finds nobody.
      try await simulation.sleep(for: .seconds(200))
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a client that is released closes its connection`(_ environment: TestEnvironment)
    async throws
  {
    try await Stage.run(environment) { stage in
      let server = try await stage.serve()
      let endings = Tally<LongLinkError?>()
      do {
        var configuration = ClientConfiguration(servers: server.endpoints)
        configuration.logger.logLevel = .critical
        let client = try LongLinkClient(configuration, on: stage.clientLoop)
        try await client.connect()
        let patient = RequestOptions(timeout: .seconds(3_600))
        client.request(.hang, [1], options: patient, on: .connectionLoop) { result in
          if case .failure(let error) = result { endings.add(error) } else { endings.add(nil) }
        }
        try await stage.until { await server.counters().requestsRunning == 1 }
      }
      await endings.reached(1)
      #expect(endings.elements[0]?.code == .closed)
      try await stage.until { await server.counters().openConnections == 0 }
    }
  }

  @Test func `earlier pushes are sent whole`() async throws {
    let received = Tally<Push>()
    try await Stage.serving { server in
      server.onPush(7) { push, _ in received.add(push) }
    } _: { stage, _, client in
      try await client.connect()
      let body = [UInt8](repeating: 5, count: 1_000_000)
      try await client.push(7, body)
      await client.close(within: .seconds(10))
      try await stage.clientLoop.sleep(for: .seconds(1))
      #expect(received.elements == [Push(type: 7, body: body)])
    }
  }
}
