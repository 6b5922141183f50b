// SPDX-License-Identifier: Apache-2.0

import BenchSupport
import Foundation

extension Runner {
  /// Whether the system has redis.
  package static var hasRedis: Bool {
    ["redis-server", "redis-benchmark"].allSatisfy { name in
      (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").contains {
        FileManager.default.isExecutableFile(atPath: "\($0)/\(name)")
      }
    }
  }

  /// redis-benchmark sends `-P` commands, waits for all responses, and repeats.
  func runRedis(_ work: Work, _ placement: Placement, _ round: Int) throws -> Run {
    let port = 20_000 + Int(ProcessInfo.processInfo.processIdentifier) % 20_000
    let server = try Child(
      [
        "redis-server", "--port", "\(port)", "--bind", "127.0.0.1", "--save", "",
        "--appendonly", "no",
      ], placement)
    defer { server.end() }
    while let line = server.readLine(), !line.contains("Ready to accept connections") {}
    // A count for which the run takes about as long as those of the other subjects.
    let guess: Double = work.shape == .single ? 20_000 : 800_000
    let count = Int(guess * seconds * (placement == .one ? 1.5 : 1))
    let client = try Child(
      [
        "redis-benchmark", "-h", "127.0.0.1", "-p", "\(port)", "-n", "\(count)", "-c",
        "\(work.connections)", "-P", "\(work.inFlight)", "--csv", "ECHO",
        String(repeating: "x", count: work.body),
      ], placement)
    defer { client.end() }
    let text = client.readToEnd()
    // "test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95…","p99…","max…"
    guard let line = text.split(separator: "\n").last else {
      throw BenchError("redis-benchmark printed nothing")
    }
    let cells = line.split(separator: ",").map { $0.trimmingCharacters(in: ["\""]) }
    guard cells.count >= 8, let rate = Double(cells[cells.count - 7]),
      let p50 = Double(cells[cells.count - 4]), let p99 = Double(cells[cells.count - 2])
    else { throw BenchError("redis-benchmark printed: \(line)") }
    let outcome = Outcome(
      requests: UInt64(count), seconds: Double(count) / rate, allRequests: UInt64(count),
      p50: UInt64(p50 * 1e6), p99: UInt64(p99 * 1e6), p999: 0, cpu: 0, allocations: 0,
      systemCalls: 0, peakMemory: 0)
    return Run(
      subject: "redis", work: work, placement: placement, round: round, client: outcome,
      server: nil)
  }
}
