// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCalls
import LongLinkTesting
import Testing

/// Asking in another way while the connection is down.
@Suite struct PollingTests {
  private let policy = PollingPolicy(after: .seconds(30), interval: .seconds(60), jitter: 0)

  @Test func `rounds begin when the connection has been down for the bound`() async throws {
    try await Scene.run { scene in
      let rounds = Tally<PollingRound>()
      let fallback = try scene.api.whileDown(policy) { rounds.add($0) }
      try await scene.sleep(.seconds(100))
      #expect(rounds.elements.isEmpty, "an idle client is not down")
      try await scene.client.connect()
      try await scene.sleep(.seconds(100))
      #expect(rounds.elements.isEmpty)
      await scene.server.stop()
      let start = scene.simulation.now
      try await scene.sleep(.milliseconds(29_900))
      #expect(rounds.elements.isEmpty)
      #expect(await fallback.isPolling == false)
      try await scene.sleep(.milliseconds(200))
      #expect(rounds.elements.map(\.number) == [1])
      #expect(await fallback.isPolling)
      try await scene.sleep(.seconds(180))
      #expect(rounds.elements.map(\.number) == [1, 2, 3, 4])
      let last = rounds.elements[3].downFor
      #expect(last > .milliseconds(209_900) && last < .milliseconds(210_100))
      #expect(start.duration(to: scene.simulation.now) < .seconds(211))
    }
  }

  @Test func `they stop when a connection has answered, and the round under way is cancelled`()
    async throws
  {
    try await Scene.run { scene in
      let ends = Tally<Bool>()
      let fallback = try scene.api.whileDown(policy) { _ in
        try? await scene.simulation.sleep(for: .seconds(3_600))
        ends.add(Task.isCancelled)
      }
      try await scene.client.connect()
      let address = scene.server.address
      await scene.server.stop()
      try await scene.sleep(.seconds(40))
      #expect(await fallback.isPolling && ends.elements.isEmpty)
      let back = try await SimulatedServer.start(
        on: scene.simulation.eventLoop(named: "server again"), at: address)
      back.on(1, .reply())
      try await scene.until { scene.client.state.isConnected }
      #expect(ends.elements.isEmpty)
      _ = try await scene.api.call(.raw(1), [])
      try await scene.until { ends.elements == [true] }
      #expect(await fallback.isPolling == false)
      let counters = await fallback.counters()
      #expect(counters.rounds == 1 && counters.cancelled == 1)
      try await scene.sleep(.seconds(1_000))
      #expect(await fallback.counters().rounds == 1)
      await back.stop()
    }
  }

  @Test func `connections that are cut as soon as they are made do not keep it from polling`()
    async throws
  {
    try await Scene.run { scene in
      let rounds = Tally<PollingRound>()
      let fallback = try scene.api.whileDown(policy) { round in
        try? await scene.simulation.sleep(for: .seconds(40))
        rounds.add(round)
      }
      let cutting = scene.spawn {
        while !Task.isCancelled {
          if scene.client.state.isConnected { scene.server.resetConnections() }
          try await scene.sleep(.milliseconds(100))
        }
      }
      try await scene.client.connect()
      try await scene.sleep(.seconds(280))
      #expect(await scene.client.counters().connects > 5)
      #expect(rounds.elements.map(\.number) == [1, 2, 3], "\(rounds.elements)")
      #expect(rounds.elements[0].downFor < .seconds(31))
      #expect(await fallback.counters().cancelled == 0)
      cutting.cancel()
      _ = try? await cutting.value
    }
  }

  @Test func `no round begins while there is a connection that nothing is known of yet`()
    async throws
  {
    try await Scene.run { scene in
      let rounds = Tally<PollingRound>()
      try scene.api.whileDown(policy) { rounds.add($0) }
      try await scene.client.connect()
      let address = scene.server.address
      await scene.server.stop()
      try await scene.sleep(.milliseconds(100))
      let back = try await SimulatedServer.start(
        on: scene.simulation.eventLoop(named: "server again"), at: address)
      try await scene.until { scene.client.state.isConnected }
      try await scene.sleep(.seconds(1_000))
      #expect(rounds.elements.isEmpty)
      await back.stop()
    }
  }

  @Test func `a connection that is often lost for a short time needs no polling`() async throws {
    try await Scene.run { scene in
      let rounds = Tally<PollingRound>()
      try scene.api.whileDown(policy) { rounds.add($0) }
      scene.server.on(1, .reply())
      for _ in 0..<20 {
        // A connection that has worked is made anew at once.
        _ = try await scene.api.call(.raw(1), [])
        scene.server.resetConnections()
        try await scene.sleep(.seconds(20))
      }
      #expect(await scene.client.counters().connects == 21)
      #expect(rounds.elements.isEmpty)
    }
  }

  @Test func `rounds do not overlap, and each pause begins at the end of a round`() async throws {
    try await Scene.run { scene in
      let begins = Tally<LinkInstant>()
      try scene.api.whileDown(policy) { _ in
        begins.add(scene.simulation.now)
        try? await scene.simulation.sleep(for: .seconds(100))
      }
      try await scene.client.connect()
      await scene.server.stop()
      try await scene.sleep(.seconds(500))
      let times = begins.elements
      #expect(times.count == 3)
      for (first, second) in zip(times, times.dropFirst()) {
        let pause = first.duration(to: second)
        #expect(pause >= .seconds(160) && pause < .milliseconds(160_010))
      }
    }
  }

  @Test func `a suspended client does not poll`() async throws {
    try await Scene.run { scene in
      let rounds = Tally<PollingRound>()
      try scene.api.whileDown(policy) { rounds.add($0) }
      try await scene.client.connect()
      await scene.server.stop()
      try await scene.sleep(.seconds(20))
      await scene.client.suspend()
      try await scene.sleep(.seconds(1_000))
      #expect(rounds.elements.isEmpty)
      scene.client.resume()
      try await scene.sleep(.seconds(40))
      #expect(rounds.elements.map(\.number) == [1])
    }
  }

  @Test func `a fallback that is stopped makes no more requests`() async throws {
    try await Scene.run { scene in
      let ends = Tally<Bool>()
      let fallback = try scene.api.whileDown(policy) { _ in
        try? await scene.simulation.sleep(for: .seconds(3_600))
        ends.add(Task.isCancelled)
      }
      try await scene.client.connect()
      await scene.server.stop()
      try await scene.sleep(.seconds(40))
      fallback.stop()
      fallback.stop()
      try await scene.sleep(.seconds(1_000))
      #expect(ends.elements == [true])
      let counters = await fallback.counters()
      #expect(counters.rounds == 1 && counters.cancelled == 1)
    }
  }

  @Test func `jitter spreads the clients of one server`() async throws {
    try await Scene.run { scene in
      let times = Tally<Duration>()
      for _ in 0..<50 {
        try scene.api.whileDown { if $0.number == 1 { times.add($0.downFor) } }
      }
      try await scene.client.connect()
      await scene.server.stop()
      try await scene.sleep(.seconds(50))
      let sorted = times.elements.sorted()
      #expect(sorted.count == 50)
      #expect(sorted[0] >= .seconds(30) && sorted[49] < .milliseconds(42_010))
      #expect(sorted[49] - sorted[0] > .seconds(6))
    }
  }

  @Test(arguments: [
    (PollingPolicy(after: .seconds(-1)), "after"),
    (PollingPolicy(interval: .zero), "interval"),
    (PollingPolicy(jitter: 1.5), "jitter"),
    (PollingPolicy(jitter: .nan), "jitter"),
  ])
  func `an impossible policy is reported`(_ policy: PollingPolicy, _ field: String) async throws {
    try await Scene.run { scene in
      let error = #expect(throws: LongLinkError.self) { try scene.api.whileDown(policy) { _ in } }
      #expect(error?.code == .invalidConfiguration && error?.field == field)
    }
  }
}
