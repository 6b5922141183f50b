import Foundation
import LongLinkDemoMessages
import Testing

/// `longlink bench`.
@Suite(.timeLimit(.minutes(2))) struct BenchTests {
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

  @Test func `at a rate as many are due as the time has room for`() async throws {
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
  @Test func `a stall is hidden by a closed loop and shown at a rate`() async throws {
    func stalling() throws -> ScriptedPeer {
      try ScriptedPeer { connection in
        connection.greet()
        connection.read()
        connection.write(ScriptedConnection.frame(kind: 0x01, tag: 200, serial: 50))
        connection.readToEnd()
      }
    }
    let closed = try await bench(
      "--port", try stalling().port, "--duration", "2", "--deadline", "2.5")
    #expect(closed.code == 4)
    #expect(closed.report.answered == 1)
    #expect(closed.report.failures == ["deadlineExceeded": 1])
    #expect(closed.report.unsent == 0)

    let open = try await bench(
      "--port", try stalling().port, "--duration", "2", "--deadline", "2.5", "--rate", "50")
    #expect(open.code == 4)
    #expect(open.report.answered == 1)
    #expect(open.report.failures == ["deadlineExceeded": 1])
    #expect(open.report.unsent == 98)
    // Half of them were due for at least half of the time.
    #expect(open.report.latency.p50 >= 980)
    #expect(open.report.latency.p99 >= 1_940)
  }

  @Test func `answers with another code are counted by it`() async throws {
    let server = try await RunningServer()
    let (report, code) = try await bench(
      "--port", server.port, "--type", "77", "--duration", "0.3")
    #expect(code == 5)
    #expect(report.answered == 0)
    #expect(report.failures == ["rejected with 404": report.failed])
    #expect(report.failed > 0)
  }

  @Test func `people get times and bars`() async throws {
    let server = try await RunningServer()
    let finished = try await Tool.run("bench", "--port", server.port, "--duration", "0.3")
    #expect(finished.code == 0)
    #expect(finished.lines.first?.contains(" answered in ") == true)
    #expect(finished.lines.contains { $0.hasPrefix("p99.9 ") && $0.hasSuffix(" ms") })
    #expect(finished.text.contains("█"))
    #expect(finished.errors.isEmpty)
  }

  @Test func `without a server it says so`() async throws {
    let finished = try await Tool.run("bench", "--port", "1", "--duration", "0.3")
    #expect(finished.code == 3)
    #expect(finished.output.isEmpty)
  }

  @Test(arguments: [
    ["--rate", "0"], ["--rate", "many"], ["--in-flight", "0"], ["--connections", "-1"],
    ["--body", "-1"], ["--duration", "0"], ["--type", "16777216"],
  ])
  func `what cannot be is told of`(_ arguments: [String]) async throws {
    let finished = try await Tool(["bench"] + arguments).finish()
    #expect(finished.code == 64)
    #expect(finished.output.isEmpty)
  }
}
