// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkTesting
import Synchronization
import Testing

/// A peer that refuses, drains and resets as it likes: what is sent again runs no more often than
/// it may, and in order where that was asked for.
@Suite struct RetryChaosTests {
  /// What came to the peer, and what it ran.
  private final class Ledger: Sendable {
    struct State {
      var arrivals: Set<UInt32> = []
      var runs: [UInt32] = []
      var drained: Set<Int> = []
    }

    private let state = Mutex(State())

    func change<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
      state.withLock { body(&$0) }
    }

    var now: State { change { $0 } }
  }

  private static func isOrdered(_ number: UInt32) -> Bool { number % 2 == 0 }
  private static func isIdempotent(_ number: UInt32) -> Bool { number % 3 == 0 }

  @Test(arguments: 0..<6)
  func `retried requests keep their promises`(_ block: Int) async throws {
    var total = RequestCounters.zero
    for seed in block * 10..<block * 10 + 10 {
      do {
        total += try await run(Simulation(seed: UInt64(seed)))
      } catch {
        Issue.record(error, "seed \(seed)")
      }
    }
    // Ten runs together saw every reason to send again.
    #expect(total.retriedNotSent > 0 && total.retriedRefused > 0, "\(total)")
    #expect(total.retriedIdempotent > 0, "\(total)")
    #expect(total.succeeded > 0 && total.lost > 0 && total.rejected > 0, "\(total)")
  }

  private func run(_ simulation: Simulation) async throws -> RequestCounters {
    let totals = Tally<RequestCounters>()
    let outcomes = Tally<(number: UInt32, result: Result<[UInt8], LongLinkError>)>()
    let ledger = Ledger()
    try await Stage.run(in: simulation) { stage in
      simulation.network.conditions = simulation.random(in: 0...1) == 0 ? .normal : .unsteady
      let server = try await SimulatedServer.start(
        on: stage.serverLoop, at: .ipv4(127, 0, 0, 1, port: 0))
      server.on(1) { self.judge($0, simulation, ledger) }
      let client = try stage.client(to: [server.endpoint]) {
        $0.heartbeat = Heartbeat(interval: .milliseconds(400), timeout: .milliseconds(200))
        $0.reconnect.cap = .milliseconds(200)
        $0.reconnect.afterRefused = .milliseconds(20)
        $0.reconnect.afterClose = .milliseconds(20)
        $0.reconnect.afterLostHeartbeat = .milliseconds(20)
        $0.retry.baseDelay = .milliseconds(5)
        $0.retry.maxDelay = .milliseconds(50)
        ($0.retry.budget, $0.retry.budgetPerSuccess) = (4, 0.2)
      }
      let breaking = stage.spawn {
        while true {
          try await simulation.sleep(for: .milliseconds(simulation.random(in: 20...400)))
          switch simulation.random(in: 0...3) {
          case 0: simulation.network.loseAllLinks()
          case 1: simulation.network.links.last?.silence()
          case 2: simulation.network.connects = .refused
          default: simulation.network.connects = .normal
          }
        }
      }
      for number in 0..<80 as Range<UInt32> {
        self.ask(number, client, simulation, outcomes)
        // Before the turn's end, and so before a byte has left.
        if simulation.random(in: 0...30) == 0 { simulation.network.loseAllLinks() }
        if simulation.random(in: 0...2) == 0 {
          try await simulation.sleep(for: .milliseconds(simulation.random(in: 0...40)))
        }
      }
      await outcomes.reached(80)
      breaking.cancel()
      _ = await breaking.result
      await client.close(within: .seconds(1))
      try await simulation.sleep(for: .seconds(1))
      await server.stop()
      self.check(simulation.seed, outcomes.elements, ledger.now)
      totals.add(await client.counters().requests)
    }
    return totals.elements[0]
  }

  private func ask(
    _ number: UInt32, _ client: LongLinkClient, _ simulation: Simulation,
    _ outcomes: Tally<(number: UInt32, result: Result<[UInt8], LongLinkError>)>
  ) {
    let options = RequestOptions(
      timeout: .milliseconds(simulation.random(in: 20...1_500)),
      waitsForConnection: simulation.random(in: 0...7) != 0,
      priority: UInt32(simulation.random(in: 0...2)),
      retry: Self.isIdempotent(number) ? .idempotent : .ifSafe,
      isOrdered: Self.isOrdered(number))
    let body = (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    let task = client.request(1, body, options: options, on: .connectionLoop) {
      outcomes.add((number, $0))
    }
    guard simulation.random(in: 0...9) == 0 else { return }
    simulation.spawn {
      try await simulation.sleep(for: .milliseconds(simulation.random(in: 0...60)))
      task.cancel()
    }
  }

  /// What the peer does about a request; what it does not refuse has run.
  private func judge(
    _ request: ReceivedMessage, _ simulation: Simulation, _ ledger: Ledger
  ) -> ServerAction {
    let number = request.body.enumerated().reduce(0) { $0 | UInt32($1.element) << (8 * $1.offset) }
    let isDrained = ledger.change { state in
      state.arrivals.insert(number)
      return state.drained.contains(request.connection)
    }
    if isDrained { return .refuse(.draining) }
    let time = Duration.milliseconds(simulation.random(in: 0...30))
    switch simulation.random(in: 0...19) {
    case 0, 1: return .refuse(.overloaded)
    case 2: return .refuse(.overloaded, metadata: WireMetadata(retryAfter: time))
    case 3: return .sequence([.refuse(.overloaded), .delay(time, then: .reply([0, 0, 0, 0xFF]))])
    case 4: return .refuse(.draining)
    case 5: return .refuse(.unknownType)
    default: ledger.change { $0.runs.append(number) }
    }
    switch simulation.random(in: 0...15) {
    case 0: return .never
    case 1: return .reset
    case 2: return .replyTwice(request.body)
    case 3:
      ledger.change { _ = $0.drained.insert(request.connection) }
      return .sequence([.goAway(), .delay(time, then: .reply(request.body))])
    default: return .delay(time, then: .reply(request.body))
    }
  }

  private func check(
    _ seed: UInt64, _ outcomes: [(number: UInt32, result: Result<[UInt8], LongLinkError>)],
    _ state: Ledger.State
  ) {
    var givenUp: Set<UInt32> = []
    #expect(outcomes.map(\.number).sorted() == Array(0..<80), "seed \(seed)")
    for (number, result) in outcomes {
      let runs = state.runs.count { $0 == number }
      let mayRunAgain = Self.isIdempotent(number) && !Self.isOrdered(number)
      #expect(runs <= (mayRunAgain ? 6 : 1), "seed \(seed): \(number) ran \(runs)")
      switch result {
      case .success(let body):
        #expect(runs >= 1 && body.count == 4 && body[0] == UInt8(number), "seed \(seed): \(number)")
      case .failure(let error):
        switch error.delivery {
        case .notSent:
          #expect(!state.arrivals.contains(number), "seed \(seed): \(number) came: \(error)")
        case .refused: #expect(runs == 0, "seed \(seed): \(number) ran: \(error)")
        case .answered: Issue.record("seed \(seed): nobody answers so: \(error)")
        case .sent: givenUp.insert(number)
        }
      }
    }
    // Such may arrive late, on a connection of which the client expects nothing more.
    let ordered = state.runs.filter { Self.isOrdered($0) && !givenUp.contains($0) }
    #expect(ordered == ordered.sorted(), "seed \(seed)")
  }
}
