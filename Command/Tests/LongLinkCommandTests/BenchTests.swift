// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkDemoMessages
import Testing

@testable import LongLinkCommand

/// `longlink bench`.
@Suite(.timeLimit(.minutes(15))) struct BenchTests {
  private struct Report: Decodable {
    struct Latency: Decodable {
      let min: Double
      let p50: Double
      let p99: Double
      let max: Double
    }

    let answered: UInt64
    let failed: UInt64
    let failures: [String: UInt64]
    let unsent: UInt64
    let seconds: Double
    let latency: Latency
  }

  private func bench(_ arguments: String...) async throws -> (report: Report, code: Int32?) {
    let finished = try await Tool(["bench", "--json"] + arguments).finish()
    return (try JSONDecoder().decode(Report.self, from: Data(finished.output)), finished.code)
  }

  @Test func `every request is answered and counted`() async throws {
    let server = try await RunningServer()
    let (report, code) = try await bench(
      "--port", server.port, "--connections", "3", "--in-flight", "8", "--body", "1000",
      "--duration", "0.4")
    #expect(code == 0)
    #expect(report.failed == 0)
    #expect(report.unsent == 0)
    #expect(report.seconds >= 0.4)
    #expect(report.answered > 0)
    #expect(report.latency.min > 0)
    #expect(report.latency.p50 <= report.latency.p99)
    // The one that asks is counted too.
    #expect(try await server.stats().requestsReceived == report.answered + 1)
  }

  /// Nothing is answered, so that all are under way at once.
  @Test func `requests in flight beyond the server's limit are queued`() async throws {
    let peer = try ScriptedPeer { connection in
      connection.greet()
      connection.readToEnd()
    }
    let (report, code) = try await bench(
      "--port", peer.port, "--in-flight", "100000", "--duration", "2", "--timeout", "2.5")
    #expect(code == 4)
    #expect(report.failures == ["deadlineExceeded": report.failed])
  }

  @Test func `the number of due requests is the rate times the duration`() async throws {
    let server = try await RunningServer()
    let (report, code) = try await bench(
      "--port", server.port, "--rate", "200", "--in-flight", "64", "--duration", "0.5")
    #expect(code == 0)
    #expect(report.answered + report.unsent == 100)
    #expect(report.seconds >= 0.4)
    #expect(try await server.stats().requestsReceived == report.answered + 1)
  }

  /// Answers one request and no other; at a rate, those that cannot be sent are due
  /// all the while.
  @Test func `a closed loop hides a stall, and an open loop shows it`() async throws {
    func stalling() throws -> ScriptedPeer {
      try ScriptedPeer { connection in
        connection.greet()
        connection.read()
        connection.write(ScriptedConnection.frame(kind: 0x01, tag: 200, serial: 50))
        connection.readToEnd()
      }
    }
    let closed = try await bench(
      "--port", try stalling().port, "--duration", "2", "--timeout", "2.5")
    #expect(closed.code == 4)
    #expect(closed.report.answered == 1)
    #expect(closed.report.failures == ["deadlineExceeded": 1])
    #expect(closed.report.unsent == 0)

    let open = try await bench(
      "--port", try stalling().port, "--duration", "2", "--timeout", "2.5", "--rate", "50")
    #expect(open.code == 4)
    #expect(open.report.answered == 1)
    #expect(open.report.failures == ["deadlineExceeded": 1])
    #expect(open.report.unsent == 98)
    // Half of them were due for at least half of the time.
    #expect(open.report.latency.p50 >= 980)
    #expect(open.report.latency.p99 >= 1_940)
  }

  @Test func `responses with other codes are counted by code`() async throws {
    let server = try await RunningServer()
    let (report, code) = try await bench(
      "--port", server.port, "--type", "77", "--duration", "0.3")
    #expect(code == 5)
    #expect(report.answered == 0)
    #expect(report.failures == ["rejected with 404": report.failed])
    #expect(report.failed > 0)
  }

  @Test func `times and bars are printed without --json`() async throws {
    let server = try await RunningServer()
    let finished = try await Tool.run("bench", "--port", server.port, "--duration", "0.3")
    #expect(finished.code == 0)
    #expect(finished.lines.first?.contains(" answered in ") == true)
    #expect(finished.lines.contains { $0.hasPrefix("p99.9 ") && $0.hasSuffix("s") })
    #expect(finished.lines.contains { $0.contains("from – to in ") && $0.hasSuffix("%") })
    #expect(finished.text.contains("█"))
    #expect(finished.errors.isEmpty)
  }

  @Test func `different times look different, and bars are as long as their counts`() {
    func lines(_ times: [(nanoseconds: Int64, count: Int)]) -> [String] {
      let tally = BenchTally()
      for (time, count) in times {
        for _ in 0..<count { tally.answered(after: .nanoseconds(time)) }
      }
      return BenchReport(tally.now, over: .seconds(1)).lines
    }
    #expect(
      lines([(17_200, 8_000), (40_000, 1_900), (3_000_000, 100)]) == [
        "10000 answered in 1.00 s, 10000 a second; 0 failed",
        "min            17.2 µs", "mean           51.4 µs", "p50            17.2 µs",
        "p90            40.0 µs", "p99            40.0 µs", "p99.9        3000.0 µs",
        "p99.99       3000.0 µs", "max          3000.3 µs", "",
        "         from – to in µs  count        %",
        "       16.4 –       32.8   8000   80.000  ████████████████████████████████████████",
        "       32.8 –       65.5   1900   19.000  █████████▌",
        "     2097.2 –     4194.3    100    1.000  ▌",
      ])
    // No row without a request, and none that claims to have had none.
    let few = lines([(5_000_000, 199_999), (3_000_000_000, 1)])
    #expect(few.contains("p50           5.001 ms"), "\(few)")
    #expect(few.last == "   2147.484 –   4294.967       1  < 0.001", "\(few)")
    #expect(few.count == 13)
    #expect(lines([]).count == 1)
  }

  // MARK: - Ctrl-C

  @Test(arguments: [[], ["--rate", "50", "--in-flight", "64"]])
  func `SIGINT prints the measurements so far`(_ options: [String]) async throws {
    let server = try await RunningServer()
    let bench = try Tool(
      ["bench", "--json", "--port", server.port, "--duration", "3600"] + options)
    // Each look is a request too.
    var looks: UInt64 = 1
    while try await server.stats().requestsReceived < looks + 3 {
      looks += 1
      try Task.checkCancellation()
    }
    bench.send(SIGINT)
    let finished = await bench.finish()
    #expect(finished.code == 130, "\(finished.errors)")
    let report = try JSONDecoder().decode(Report.self, from: Data(finished.output))
    #expect(report.answered > 0)
    #expect(report.failures == [:])
    #expect(report.seconds < 3600)
    #expect(finished.errors.isEmpty)
  }

  @Test(arguments: [[], ["--rate", "50"]])
  func `SIGINT does not wait for a server that stalls`(_ options: [String]) async throws {
    let (asked, continuation) = AsyncStream.makeStream(of: Void.self)
    let peer = try ScriptedPeer { connection in
      connection.greet()
      connection.read()
      continuation.yield()
      connection.readToEnd()
    }
    let bench = try Tool(
      ["bench", "--port", peer.port, "--duration", "3600", "--timeout", "3600"] + options)
    for await _ in asked { break }
    bench.send(SIGINT)
    let finished = await bench.finish()
    #expect(finished.code == 130)
    #expect(finished.lines.first?.hasPrefix("0 answered in ") == true, "\(finished.text)")
    #expect(finished.lines.first?.hasSuffix("; 0 failed") == true)
  }

  @Test func `without a server it ends with 3`() async throws {
    let finished = try await Tool.run("bench", "--port", "1", "--duration", "0.3")
    #expect(finished.code == 3)
    #expect(finished.output.isEmpty)
  }

  @Test(arguments: [
    ["--rate", "0"], ["--rate", "many"], ["--in-flight", "0"], ["--connections", "-1"],
    ["--body", "-1"], ["--duration", "0"], ["--type", "16777216"],
  ])
  func `invalid options end with 64`(_ arguments: [String]) async throws {
    let finished = try await Tool(["bench"] + arguments).finish()
    #expect(finished.code == 64)
    #expect(finished.output.isEmpty)
  }
}
