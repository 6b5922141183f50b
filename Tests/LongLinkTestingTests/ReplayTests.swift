// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Logging
import Synchronization
import Testing

/// A real client and a real server, every fault, and the same run again.
@Suite struct ReplayTests {
  /// Two servers as processes and a client, with each fault once; returns what came of it.
  static func run(seed: UInt64) async throws -> (report: String, trace: [String]) {
    let simulation = Simulation(seed: seed)
    simulation.network.conditions = .unsteady
    let addresses = [Endpoint.host("10.0.0.1", port: 7_000), .host("10.0.0.2", port: 7_000)]
    let servers = addresses.map { address in
      simulation.process(named: "server") { run in
        let server = try LongLinkServer(configuration(listen: [address]), on: [run.loop])
        server.route(1) { request in
          try await run.loop.sleep(for: .milliseconds(simulation.random(in: 0...200)))
          return request.body
        }
        run.atEnd { await server.shutDown(within: .zero) }
        try await server.start()
      }
    }
    let outcomes = try await simulation.run {
      for server in servers { try await server.start() }
      let client = try LongLinkClient(clientConfiguration(addresses), on: simulation.mainLoop)
      let asking = simulation.spawn { try await ask(client, simulation) }
      for fault in 0..<12 {
        try await simulation.sleep(for: .milliseconds(simulation.random(in: 500...4_000)))
        try await breakSomething(fault, simulation, servers)
      }
      simulation.heal()
      for server in servers where !server.isRunning { try await server.start() }
      let outcomes = try await asking.value
      await client.close()
      for server in servers { server.crash() }
      try await simulation.sleep(for: .seconds(5))
      return outcomes
    }
    #expect(simulation.openStreams == [])
    #expect(simulation.openListeners == [])
    #expect(simulation.pendingTimers == [])
    #expect(simulation.escapes == [])
    let hash = String(simulation.traceHash, radix: 16)
    return ("\(simulation.traceCount) events, hash \(hash), \(outcomes)", simulation.trace)
  }

  static func configuration(listen: [Endpoint]) -> ServerConfiguration {
    var configuration = ServerConfiguration(listen: listen)
    configuration.logger.logLevel = .critical
    return configuration
  }

  static func clientConfiguration(_ servers: [Endpoint]) -> ClientConfiguration {
    var configuration = ClientConfiguration(servers: servers)
    configuration.logger.logLevel = .critical
    configuration.heartbeat = Heartbeat(interval: .seconds(2), timeout: .seconds(1))
    return configuration
  }

  private static func ask(
    _ client: LongLinkClient,
    _ simulation: Simulation
  ) async throws -> [String] {
    var outcomes: [String] = []
    for number in 0..<100 {
      let body = [UInt8](repeating: UInt8(number), count: simulation.random(in: 1...20_000))
      do throws(LongLinkError) {
        let options = RequestOptions(
          timeout: .seconds(3),
          metadata: ["one": "1", "two": "2", "three": "3", "four": "4"]
        )
        let reply = try await client.request(1, body, options: options)
        outcomes.append(reply == body ? "ok" : "wrong")
      } catch {
        outcomes.append("\(error.code) \(error.delivery)")
      }
      try await simulation.sleep(for: .milliseconds(simulation.random(in: 0...500)))
    }
    return outcomes
  }

  private static func breakSomething(
    _ fault: Int,
    _ simulation: Simulation,
    _ servers: [SimulatedProcess]
  ) async throws {
    let link = simulation.network.links.last
    let machine = servers[0].machine
    switch fault {
    case 0: link?.lose()
    case 1: link?.reset(.toClient)
    case 2: link?.halfClose(.toServer)
    case 3: link?.silence(.toClient, for: .seconds(5))
    case 4: link?.clog(.toServer, for: .seconds(1))
    case 5: link?.stopReading(.toServer, for: .seconds(1))
    case 6: link?.flipBit(3, ofByte: (link?.bytesWritten(.toServer) ?? 0) + 20, .toServer)
    case 7: simulation.network.isolate(machine, for: .seconds(4))
    case 8: machine.pause(for: .seconds(4))
    case 9: machine.moveClock(by: .seconds(30))
    case 10:
      servers[0].crash()
      try await simulation.sleep(for: .seconds(1))
      try await servers[0].start()
    default: servers[1].crash(.machine)
    }
  }

  @Test func `a seed gives the same run again, and another seed another one`() async throws {
    let first = try await Self.run(seed: 11)
    let second = try await Self.run(seed: 11)
    #expect(first.report == second.report)
    #expect(first.trace == second.trace)
    #expect(first.report.contains("ok"))
    #expect(try await Self.run(seed: 12).report != first.report)
  }

  /// Each process hashes with a seed of its own, which must not matter.
  @Test func `a seed gives the same run in another process`() async throws {
    var reports: [String] = []
    for _ in 0..<2 {
      let result = await #expect(
        processExitsWith: .success,
        observing: [\.standardOutputContent]
      ) {
        print("REPORT", try await ReplayTests.run(seed: 11).report)
      }
      let output = String(decoding: try #require(result).standardOutputContent, as: UTF8.self)
      reports.append(
        try #require(output.split(separator: "\n").last { $0.hasPrefix("REPORT ") })
          .dropFirst(7).description)
    }
    #expect(reports[0] == reports[1])
    #expect(reports[0] == (try await Self.run(seed: 11).report))
  }
}
