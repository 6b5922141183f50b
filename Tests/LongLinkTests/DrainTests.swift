// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Testing

/// Servers that shut down while they are used.
@Suite struct DrainTests {
  /// A server whose echo waits for a latch.
  private func serve(
    _ stage: Stage,
    _ began: Tally<Void>,
    _ goOn: Latch,
    spread: Duration = .zero
  ) async throws -> LongLinkServer {
    try await stage.serve(
      setUp: { server in
        server.route(.echo) { request in
          began.add(())
          await goOn.wait()
          return request.body
        }
      },
      configure: { $0.drain.spread = spread }
    )
  }

  @Test(arguments: TestEnvironment.allCases)
  func `running requests finish, and new ones are not accepted`(_ environment: TestEnvironment)
    async throws
  {
    try await Stage.run(environment) { stage in
      let (began, goOn) = (Tally<Void>(), Latch())
      let old = try await serve(stage, began, goOn)
      let new = try await stage.serve { server in
        server.route(.echo) { request in request.body + [0] }
      }
      let client = try stage.client(of: old, new) {
        $0.reconnect.afterRefused = .milliseconds(5)
      }
      let running = (0..<5).map { client.submit(.echo, [UInt8($0)]) }
      await began.reached(5)
      let states = client.states()
      let shutting = stage.spawn { await old.shutDown(within: .seconds(100)) }
      for await state in states { if case .waiting = state { break } }
      // The next server takes what is new, while the old one still works.
      #expect(try await client.request(.echo, [9]) == [9, 0])
      goOn.open()
      for (index, task) in running.enumerated() {
        #expect(try await task.value == [UInt8(index)])
      }
      try await shutting.value
      #expect(await old.counters().connections.responsesSent == 5)
      #expect(await old.counters().requestsRunning == 0)
      #expect(await client.counters().requests.lost == 0)
    }
  }

  @Test func `requests that cross the goaway go to the next server`() async throws {
    try await Stage.simulate { stage, simulation in
      let (began, goOn) = (Tally<Void>(), Latch())
      simulation.network.conditions = LinkConditions(
        latency: .milliseconds(20) ... .milliseconds(20)
      )
      let old = try await serve(stage, began, goOn)
      let new = try await stage.serve { server in
        server.route(.echo) { request in request.body + [0] }
      }
      let client = try stage.client(of: old, new)
      let first = client.submit(.echo, [1])
      await began.reached(1)
      let shutting = stage.spawn { await old.shutDown(within: .seconds(100)) }
      // The client does not know yet: these arrive at a server that takes nothing.
      try await simulation.sleep(for: .milliseconds(1))
      let second = client.submit(.echo, [2])
      let third = client.submit(.echo, [3], options: RequestOptions(waitsForConnection: false))
      #expect(try await second.value == [2, 0])
      let error = try await failure { try await third.value }
      #expect(error.delivery == .refused)
      #expect(error.response == .draining)
      goOn.open()
      #expect(try await first.value == [1])
      try await shutting.value
      #expect(began.count == 1)
      #expect(await client.counters().requests.retried == 1)
    }
  }

  @Test func `the bound holds against a handler that ignores its cancellation`() async throws {
    try await Stage.simulate { stage, simulation in
      let (began, goOn) = (Tally<Void>(), Latch())
      let server = try await serve(stage, began, goOn)
      let client = try stage.client(of: server)
      let task = client.submit(.echo, [1], options: RequestOptions(timeout: .seconds(1_000)))
      await began.reached(1)
      let now = simulation.now
      await server.shutDown(within: .seconds(5))
      let time = now.duration(to: simulation.now)
      #expect(time >= .seconds(5) && time < .seconds(5) + .milliseconds(5), "\(time)")
      let error = try await failure { try await task.value }
      #expect(error.code == .connectionLost && error.delivery == .sent)
      goOn.open()
      #expect(simulation.openListeners == [])
      // A second call has nothing to wait for.
      await server.shutDown()
    }
  }

  @Test func `a drain does not wait for a request that was cancelled before its last fragment`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve()
      let client = try await SimulatedClient.connect(
        to: server.addresses[0], on: stage.clientLoop)
      try await client.sayHello(.hello(features: [.metadata, .fragments]))
      client.send([WireFrame.request(.echo, serial: 50, [1, 2]).fragments(of: 1)[0]])
      try await stage.until { await server.counters().requestsRunning == 1 }
      let began = simulation.now
      let ending = stage.spawn { await server.shutDown(within: .seconds(60)) }
      try await simulation.sleep(for: .seconds(1))
      client.send([.cancel(50)])
      try await ending.value
      #expect(began.duration(to: simulation.now) < .seconds(4))
      client.close()
    }
  }

  @Test func `a large answer leaves whole`() async throws {
    try await Stage.simulate { stage, simulation in
      simulation.network.conditions = LinkConditions(
        latency: .milliseconds(20) ... .milliseconds(20)
      )
      let server = try await stage.serve { server in
        server.route(.echo) { _ in [UInt8](repeating: 3, count: 2_000_000) }
      }
      let client = try stage.client(of: server)
      let task = client.submit(.echo, [1])
      try await stage.until { await server.counters().requestsRunning == 1 }
      await server.shutDown(within: .seconds(60))
      #expect(try await task.value.count == 2_000_000)
      #expect(simulation.now.nanoseconds < 5_000_000_000)
    }
  }

  @Test func `clients come back when they were asked to`() async throws {
    let waits = Tally<Duration>()
    for seed: UInt64 in 1...30 {
      try await Stage.simulate(seed: seed) { stage, simulation in
        let server = try await stage.serve(configure: { $0.drain.spread = .seconds(20) })
        let client = try stage.client(of: server)
        _ = try await client.request(.echo, [1])
        let states = client.states()
        await server.shutDown()
        for await state in states {
          guard case .waiting(let wait) = state else { continue }
          waits.add(wait)
          break
        }
      }
    }
    #expect(waits.elements.allSatisfy { $0 <= .seconds(20) }, "\(waits.elements)")
    #expect(waits.elements.max()! > .seconds(14))
    #expect(waits.elements.min()! < .seconds(4))
    let mean = waits.elements.reduce(.zero, +) / waits.count
    // Drawn once, evenly.
    #expect(mean > .seconds(6) && mean < .seconds(14))
  }

  @Test func `streams and requests end alike when the time is up`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve { server in
        server.routeBasics()
        server.routeStream(10, [.requestItems, .responseItems]) { _, items, writer in
          for try await item in items { try await writer.write(item) }
          return []
        }
      }
      let client = try stage.client(of: server)
      let echoed = Tally<[UInt8]>()
      let task = stage.spawn {
        try await client.exchange(10, []) { items, writer in
          try await writer.write([1])
          for try await item in items { echoed.add(item) }
        }
      }
      await echoed.reached(1)
      let request = client.submit(.hang, [])
      try await stage.until { await server.counters().requestsRunning == 2 }
      let now = simulation.now
      await server.shutDown(within: .seconds(5))
      #expect(now.duration(to: simulation.now) < .seconds(7))
      let cut = try await failure { try await task.value }
      #expect(cut.itemsReceived == 1)
      for error in [cut, try await failure { try await request.value }] {
        #expect(error.code == .connectionLost && error.delivery == .sent, "\(error)")
        #expect(error.closeReason == .goneAway(.draining) && error.response == nil, "\(error)")
      }
    }
  }
}
