// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Synchronization
import Testing

/// Everything at once, determined by a seed: a failure names the seed, which replays it.
@Suite struct ChaosTests {
  /// Which requests were run by the servers' handlers, in the order in which they began.
  private final class Executions: Sendable {
    private let numbers = Mutex<[UInt32]>([])
    /// The requests in the order in which they were submitted.
    let asked = Tally<UInt32>()
    /// Those that were run in tasks of their own; what runs at once may pass them.
    let inTasks = Tally<UInt32>()

    func add(_ number: UInt32) { numbers.withLock { $0.append(number) } }
    subscript(number: UInt32) -> Int { all.count { $0 == number } }
    var all: [UInt32] { numbers.withLock { $0 } }
    var total: Int { all.count }
  }

  /// Every third request keeps its order, every fourth may run twice.
  private static func isOrdered(_ number: UInt32) -> Bool { number % 3 == 0 }
  private static func isIdempotent(_ number: UInt32) -> Bool { number % 4 == 0 }

  private static func bytes(_ number: UInt32) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
  }

  private static func number(_ bytes: [UInt8]) -> UInt32 {
    bytes.prefix(4).enumerated().reduce(0) { $0 | UInt32($1.element) << (8 * $1.offset) }
  }

  @Test(arguments: 0..<6)
  func `every request ends once whatever happens`(_ block: Int) async throws {
    var total = RequestCounters.zero
    for seed in block * 10..<block * 10 + 10 {
      do {
        total += try await run(Simulation(seed: UInt64(seed)))
      } catch {
        Issue.record(error, "seed \(seed)")
      }
    }
    // Each of ten runs together saw every way to end.
    #expect(total.succeeded > 0 && total.rejected > 0 && total.cancelled > 0, "\(total)")
    #expect(total.expired > 0 && total.lost > 0 && total.failedLocally > 0, "\(total)")
    #expect(total.lateReplies > 0, "\(total)")
  }

  @Test(arguments: [3, 1_415] as [UInt64])
  func `a seed replays`(_ seed: UInt64) async throws {
    let (first, second) = (Simulation(seed: seed), Simulation(seed: seed))
    #expect(try await run(first) == (try await run(second)))
    #expect(first.traceCount == second.traceCount)
    #expect(first.traceHash == second.traceHash)
  }

  private func run(_ simulation: Simulation) async throws -> RequestCounters {
    let seed = simulation.seed
    let totals = Tally<RequestCounters>()
    let outcomes = Tally<(number: UInt32, result: Result<[UInt8], LongLinkError>)>()
    let executions = Executions()
    try await Stage.run(in: simulation) { stage in
      simulation.network.conditions = simulation.random(in: 0...1) == 0 ? .normal : .unsteady
      let servers = try await self.serve(stage, simulation, executions)
      let client = try stage.client(of: servers[0], servers[1]) {
        $0.heartbeat = Heartbeat(interval: .milliseconds(400), timeout: .milliseconds(200))
        $0.reconnect.afterRefused = .milliseconds(50)
        $0.reconnect.cap = .milliseconds(500)
        $0.reconnect.afterClose = .milliseconds(50)
        $0.reconnect.afterLostHeartbeat = .milliseconds(100)
        $0.limits.maxWaiting = 40
      }
      let breaking = stage.spawn { try await self.breakLinks(simulation, servers) }
      let tasks = try await self.ask(client, simulation, outcomes, executions.asked)
      await outcomes.reached(tasks)
      breaking.cancel()
      _ = await breaking.result
      await client.close(within: .seconds(1))
      for server in servers { await server.shutDown(within: .seconds(1)) }
      // Late handlers come to their end.
      try await simulation.sleep(for: .seconds(2))
      try await self.judge(seed, client, servers, outcomes.elements, executions)
      totals.add(await client.counters().requests)
    }
    return totals.elements[0]
  }

  private func serve(
    _ stage: Stage,
    _ simulation: Simulation,
    _ executions: Executions
  ) async throws -> [LongLinkServer] {
    var servers: [LongLinkServer] = []
    for limit in [8, 1_024] {
      let server = try await stage.serve(
        setUp: { server in
          server.route(1) { request in
            executions.add(Self.number(request.body))
            return request.body
          }
          server.route(2) { request in
            executions.add(Self.number(request.body))
            executions.inTasks.add(Self.number(request.body))
            let delay = simulation.random(in: 0...120)
            try await request.clock.sleep(for: .milliseconds(delay))
            if delay % 11 == 0 { throw Rejection(1_000, body: request.body) }
            return request.body
          }
        },
        configure: {
          $0.limits.maxInFlight = limit
          // Two large bodies at once are too much.
          $0.limits.maxBody = 200_000
          $0.limits.maxRequestBytes = 200_000
        }
      )
      servers.append(server)
    }
    return servers
  }

  /// Asks in every style, with every option, and changes its mind; returns how many it asked.
  private func ask(
    _ client: LongLinkClient,
    _ simulation: Simulation,
    _ outcomes: Tally<(number: UInt32, result: Result<[UInt8], LongLinkError>)>,
    _ asked: Tally<UInt32>
  ) async throws -> Int {
    let count: UInt32 = 80
    for number in 0..<count {
      let draw = simulation.random()
      var body = Self.bytes(number)
      if draw % 16 == 0 { body += [UInt8](repeating: 1, count: 150_000) }
      let options = RequestOptions(
        timeout: .milliseconds(draw >> 8 % 700 + 1),
        cancelsAtPeer: draw >> 20 & 1 != 0,
        waitsForConnection: draw >> 21 & 3 != 0,
        priority: UInt32(draw >> 46 & 3),
        retry: Self.isIdempotent(number) ? .idempotent : .ifSafe,
        isOrdered: Self.isOrdered(number)
      )
      let type: MessageType = draw >> 24 & 15 == 0 ? 3 : draw >> 28 & 3 == 0 ? 1 : 2
      let patience = draw >> 32 & 3 == 0 ? Int(draw >> 40 % 100) : nil
      if draw >> 48 & 1 == 0 {
        asked.add(number)
        let task = client.request(type, body, options: options, on: .connectionLoop) {
          outcomes.add((number, $0))
        }
        if let patience {
          simulation.spawn {
            try await simulation.sleep(for: .milliseconds(patience))
            task.cancel()
          }
        }
      } else {
        let whole = body
        let task = simulation.spawn {
          let result: Result<[UInt8], LongLinkError>
          asked.add(number)
          do throws(LongLinkError) {
            result = .success(try await client.request(type, whole, options: options))
          } catch {
            result = .failure(error)
          }
          outcomes.add((number, result))
        }
        if let patience {
          simulation.spawn {
            try await simulation.sleep(for: .milliseconds(patience))
            task.cancel()
          }
        }
      }
      if draw >> 52 & 3 == 0 { try await simulation.sleep(for: .milliseconds(draw >> 56 % 40)) }
    }
    return Int(count)
  }

  private func breakLinks(
    _ simulation: Simulation,
    _ servers: [LongLinkServer]
  ) async throws {
    while true {
      try await simulation.sleep(for: .milliseconds(simulation.random(in: 5...250)))
      switch simulation.random(in: 0...7) {
      case 0: simulation.network.loseAllLinks()
      case 1: simulation.network.links.last?.silence()
      case 2: simulation.network.links.last?.silence(.toClient)
      case 3: for peer in await servers[0].peers() { peer.close() }
      case 4: for link in simulation.network.links { link.restore() }
      case 5:
        if let link = simulation.network.links.last {
          let offset = link.bytesWritten(.toServer) + Int(simulation.random(in: 0...300))
          link.flipBit(simulation.random(in: 0...7), ofByte: offset, .toServer)
        }
      case 6: simulation.network.connects = .refused
      default: simulation.network.connects = .normal
      }
    }
  }

  private func judge(
    _ seed: UInt64,
    _ client: LongLinkClient,
    _ servers: [LongLinkServer],
    _ outcomes: [(number: UInt32, result: Result<[UInt8], LongLinkError>)],
    _ executions: Executions
  ) async throws {
    let asked = Set(outcomes.map(\.number))
    #expect(outcomes.count == asked.count, "seed \(seed): one ended twice")
    var succeeded: UInt64 = 0
    for (number, result) in outcomes {
      if !Self.isIdempotent(number) || Self.isOrdered(number) {
        #expect(executions[number] <= 1, "seed \(seed): \(number) ran twice")
      }
      switch result {
      case .success(let body):
        succeeded += 1
        #expect(Self.number(body) == number, "seed \(seed)")
        #expect(executions[number] >= 1, "seed \(seed)")
      case .failure(let error) where error.delivery.isSafeToRetry:
        #expect(executions[number] == 0, "seed \(seed): \(error), and it ran")
      case .failure(let error):
        if error.delivery == .answered {
          #expect(executions[number] >= 1, "seed \(seed): \(error)")
        }
      }
    }
    judgeOrder(seed, outcomes, executions)
    let counters = await client.counters()
    #expect(counters.requestsOpen == 0, "seed \(seed)")
    #expect(counters.requestsWaiting == 0 && counters.bytesWaiting == 0, "seed \(seed)")
    #expect(counters.requests.succeeded == succeeded, "seed \(seed)")
    var (handled, received, sent): (UInt64, UInt64, UInt64) = (0, 0, 0)
    for server in servers {
      let counters = await server.counters()
      #expect(counters.openConnections == 0, "seed \(seed)")
      #expect(counters.requestsRunning == 0, "seed \(seed)")
      handled += counters.connections.handled - counters.connections.handlersSkipped
      received += counters.connections.requestsReceived
      sent += counters.connections.responsesSent
    }
    #expect(handled == UInt64(executions.total), "seed \(seed)")
    #expect(received <= counters.connections.requestsSent, "seed \(seed)")
    #expect(counters.connections.responsesReceived <= sent, "seed \(seed)")
  }

  /// No ordered request ran behind a later one, but for those that were given up as sent.
  private func judgeOrder(
    _ seed: UInt64,
    _ outcomes: [(number: UInt32, result: Result<[UInt8], LongLinkError>)],
    _ executions: Executions
  ) {
    var givenUp: Set<UInt32> = []
    for (number, result) in outcomes {
      if case .failure(let error) = result, error.delivery == .sent { givenUp.insert(number) }
    }
    let ordered = executions.inTasks.elements.filter {
      Self.isOrdered($0) && !givenUp.contains($0)
    }
    let ranks = ordered.map { executions.asked.elements.firstIndex(of: $0)! }
    #expect(ranks == ranks.sorted(), "seed \(seed)")
  }
}
