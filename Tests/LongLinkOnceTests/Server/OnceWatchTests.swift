// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
import LongLinkOnce
import LongLinkServer
import LongLinkTestSupport
import LongLinkTesting
import Logging
import Synchronization
import Testing

/// What the log and a stuck simulation say of requests that run once.
struct OnceWatchTests {
  @Test func `refused requests are in the log, by their codes`() async throws {
    let lines = LogLines()
    try await OnceStage.run { simulation, memory in
      let store = ScriptedStore(memory, clock: simulation.clock)
      let stage = try await OnceStage(simulation, store: store) { $0.logger = lines.logger }
      let caller = try await stage.client()
      #expect(try await caller.ask(OnceStage.quick, [1]).code == .ok)
      #expect(try await caller.ask(OnceStage.quick, [1]).replayed)
      store.script.withLock { $0.failingBegins = 1 }
      #expect(try await caller.ask(OnceStage.quick, [2]) == .refused(.draining))
      #expect(try await caller.ask(OnceStage.quick, [1], [7]) == .refused(.conflict))
      #expect(
        try await caller.ask(OnceStage.quick, [3], space: [UInt8](repeating: 5, count: 16))
          == .refused(.preconditionFailed))
      await stage.server.shutDown(within: .zero)
    }
    let refused = lines.all("Refused a request")
    #expect(refused.map { $0.metadata["code"] } == ["503", "409", "412"])
    #expect(refused.allSatisfy { $0.level == .info && $0.metadata["type"] == "1" })
    #expect(refused.dropFirst().first?.metadata["detail"] == "the key belongs to another payload")
  }

  @Test func `a stuck simulation says which handlers run, wait and have lost their connections`()
    async throws
  {
    let simulation = Simulation(configuration: .init(timeLimit: .seconds(100)))
    let error = await #expect(throws: SimulationError.self) {
      try await simulation.run {
        let store = MemoryOnceStore(clock: simulation.clock)
        let stage = try await OnceStage(simulation, store: store)
        let (caller, lost) = (try await stage.client(1), try await stage.client(2))
        caller.send(OnceStage.waits, [1], serial: 50)
        try await stage.awaitWaiting(1)
        caller.send(OnceStage.waits, [1], serial: 51)
        lost.send(OnceStage.waits, [2], serial: 60)
        try await stage.awaitWaiting(2)
        lost.client.reset()
        _ = try await caller.answer(to: 50)
      }
    }
    let state = try #require(error).state
    #expect(state.contains("(serial 50): has not returned\n"), "\(state)")
    #expect(state.contains("(serial 51): waits for the run of its key\n"), "\(state)")
    #expect(
      state.contains("(serial 60): has not returned, though its connection has ended"),
      "\(state)")
  }
}
