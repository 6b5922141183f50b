// SPDX-License-Identifier: Apache-2.0

package import BenchSupport
import Foundation

/// Measures how LongLink's costs grow with the number of connections, timers and requests.
package struct Scale {
  private let runner: Runner
  let program: String

  package init(_ runner: Runner) {
    self.runner = runner
    program = runner.folder.appendingPathComponent("LongLinkPeer").path
  }

  // MARK: - Idle connections

  package struct Idle: Codable {
    package let client: IdleOutcome
    /// The growth of the server's resident memory, in bytes.
    package let serverMemory: UInt64
    /// The server's CPU time while they were idle, as a fraction of that time.
    package let serverCPUShare: Double
    /// The number of allocations in the server for a push to all.
    package let pushAllocations: UInt64

    package var lines: [String] {
      let count = Double(client.connections)
      return [
        String(
          format: "%d idle connections, opened in %.2f s: %.0f per second", client.connections,
          client.connectSeconds, count / client.connectSeconds),
        String(
          format: "memory per connection: client %.2f KiB, server %.2f KiB",
          Double(client.memory) / count / 1_024, Double(serverMemory) / count / 1_024),
        String(
          format: "with a heartbeat every 30 s: client %.2f %%, server %.2f %% of one CPU",
          client.cpuShare * 100, serverCPUShare * 100),
        String(
          format: "a push to all: received by all after %.1f ms; %.3f allocations per connection",
          client.pushSeconds * 1_000, Double(pushAllocations) / count),
      ]
    }
  }

  /// Opens connections from one process to another, with TLS or without, and leaves them idle for
  /// `seconds`.
  package func idle(connections: Int, seconds: Double, tls: Bool = false) throws -> Idle {
    let security = tls ? ["--tls"] : []
    let (server, port) = try startServer(security)
    defer { server.end() }
    let before = try told(by: server)
    let client = try Child(
      [
        program, "idle", "--port=\(port)", "--connections=\(connections)", "--seconds=\(seconds)",
      ] + security)
    defer { client.end() }
    func heard() throws -> IdleOutcome { try client.read(IdleOutcome.self, of: "the client") }
    _ = try heard()
    let open = try told(by: server)
    let begin = ProcessInfo.processInfo.systemUptime
    _ = try heard()
    let rested = try told(by: server)
    let time = ProcessInfo.processInfo.systemUptime - begin
    let outcome = try heard()
    let end = try told(by: server)
    return Idle(
      client: outcome, serverMemory: open.memory - before.memory,
      serverCPUShare: (rested.cpu - open.cpu) / time,
      pushAllocations: end.allocations - rested.allocations)
  }

  // MARK: - Curves

  package struct Point: Codable {
    /// The number of timers, or of requests in flight.
    package let count: Int
    /// The CPU time of both processes per request, in microseconds.
    package let cpu: Summary.Spread
    /// The ratio to the first point, round by round.
    package let ratio: Summary.Spread

    package func line(of what: String) -> String {
      String(
        format: "%9d %@  %.3f µs of CPU per request  %.2f (%.2f–%.2f)", count, what, cpu.median,
        ratio.median, ratio.least, ratio.most)
    }
  }

  package enum Axis {
    /// Live timers beside 128 requests in flight.
    case timers
    case inFlight
  }

  /// Measures the cost of a request of 64 bytes at each count, in interleaved rounds.
  package func curve(_ axis: Axis, _ counts: [Int], rounds: Int) throws -> [Point] {
    var costs: [[Double]] = []
    for _ in 0..<rounds {
      costs.append(
        try counts.map { count in
          switch axis {
          case .timers: try cost(inFlight: 128, timers: count)
          case .inFlight: try cost(inFlight: count, timers: 0)
          }
        })
    }
    return counts.enumerated().map { index, count in
      Point(
        count: count, cpu: Summary.Spread(costs.map { $0[index] }),
        ratio: Summary.Spread(costs.map { $0[index] / $0[0] }))
    }
  }

  private func cost(inFlight: Int, timers: Int) throws -> Double {
    let (client, server) = try runner.run(
      "longlink", server: [program, "serve", "--max-in-flight=1000000"],
      client: [program, "load", "--timers=\(timers)", "--in-flight=\(inFlight)"], .free)
    return (client.cpu / Double(client.requests) + server.cpu / Double(server.requests)) * 1e6
  }

  /// The counts and usage of a server so far.
  func told(by server: Child) throws -> ServerOutcome {
    try server.write("\n")
    return try server.read(ServerOutcome.self, of: "the server")
  }

  func startServer(_ options: [String]) throws -> (Child, UInt16) {
    let server = try Child([program, "serve"] + options)
    guard let line = server.readLine(), let port = Runner.port(line) else {
      server.end()
      throw BenchError("the server did not start")
    }
    return (server, port)
  }
}
