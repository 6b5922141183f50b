// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkDemoMessages
import LongLinkDriver
import LongLinkProtobufC
import Testing

/// `longlink stream --resume`, with servers that end while it reads.
@Suite(.timeLimit(.minutes(15))) struct ResumeTests {
  /// Asks for items that take longer than any test, so that no server ends too late.
  private static func stream(_ server: RunningServer, _ arguments: String...) throws -> Tool {
    let request = try CountRequest(count: 10_000, intervalMilliseconds: 100).hex
    return try Tool(["stream", "6", "--port", server.port, "--hex", request, "--json"] + arguments)
  }

  private struct Record: Decodable {
    let number: Int?
    let body: Data
  }

  /// The numbers that the server gave the items, of which each has the same number here.
  private static func numbers(_ lines: [String]) throws -> [UInt64] {
    try lines.map { line in
      let record = try JSONDecoder().decode(Record.self, from: Data(line.utf8))
      let tick = try Tick(copying: Array(record.body))
      #expect(record.number == Int(tick.number))
      return tick.number
    }
  }

  @Test(arguments: [(SIGKILL, 2), (SIGTERM, 1)])
  func `a stream outlives its servers, and each item comes once`(
    _ signal: Int32, _ restarts: Int
  ) async throws {
    var servers = [try await RunningServer()]
    let port = servers[0].port
    let stream = try Self.stream(servers[0], "--resume")
    var last: UInt64 = 0
    var lines: [String] = []
    for _ in 1...restarts {
      lines.append(try #require(await stream.nextLine()))
      servers.last?.tool.send(signal)
      // A server that drains does not listen any more.
      while try await Tool.run("call", "1", "--port", port).code != 3 {
        try Task.checkCancellation()
      }
      servers.append(try await RunningServer("--port", port))
      let report = try #require(await stream.nextErrorLine())
      #expect(report.contains("the stream goes on after item "), "\(report)")
      if signal == SIGKILL { #expect(report.contains("connectionLost"), "\(report)") }
      let words = report.split { !$0.isNumber && !$0.isLetter }
      let item = try #require(words.firstIndex(of: "item"))
      last = try #require(UInt64(words[item + 1]))
    }
    while lines.count <= last { lines.append(try #require(await stream.nextLine())) }
    stream.send(SIGTERM)
    _ = await stream.finish()
    #expect(try Self.numbers(lines) == Array(1...UInt64(lines.count)))
  }

  @Test func `without the option a stream ends with its server`() async throws {
    let server = try await RunningServer()
    let stream = try Self.stream(server)
    let first = try #require(await stream.nextLine())
    server.tool.send(SIGKILL)
    let end = await stream.finish()
    #expect(end.code == 7)
    let numbers = try Self.numbers([first] + end.lines)
    #expect(numbers == Array(1...UInt64(numbers.count)))
  }

  @Test func `other message types get the same request again`() async throws {
    let server = try await RunningServer()
    let request = try FeedRequest(format: "json", nodes: 10_000, intervalMilliseconds: 100).hex
    let stream = try Tool([
      "stream", "9", "--port", server.port, "--hex", request, "--json", "--resume",
    ])
    var records: [Record] = []
    func readToBeginning() async throws {
      while true {
        let line = try #require(await stream.nextLine())
        records.append(try JSONDecoder().decode(Record.self, from: Data(line.utf8)))
        if records[records.count - 1].body.contains(UInt8(ascii: "[")) { return }
      }
    }
    try await readToBeginning()
    server.tool.send(SIGKILL)
    _ = await server.tool.finish()
    let next = try await RunningServer("--port", server.port)
    try await readToBeginning()
    withExtendedLifetime(next) {}
    stream.send(SIGTERM)
    _ = await stream.finish()
    #expect(records.map(\.number) == Array(1...records.count))
  }

  @Test func `an error of the handler, the limit and the deadline end it`() async throws {
    let server = try await RunningServer()
    let failing = try CountRequest(
      count: 5, failAfter: 2, failCode: 1042, failDetail: "no more", after: 1
    ).hex
    let failed = try await Tool(
      ["stream", "6", "--port", server.port, "--hex", failing, "--resume"]
    ).finish()
    #expect(failed.code == 5 && failed.lines.count == 1, "\(failed.errors)")
    let limited = try await Self.stream(server, "--resume", "--limit", "2").finish()
    #expect(limited.code == 0 && limited.lines.count == 2)
    let late = try Self.stream(server, "--resume", "--deadline", "3")
    #expect(await late.nextLine() != nil)
    server.tool.send(SIGKILL)
    let end = await late.finish()
    #expect(end.code == 4 && end.output.count < 1_000, "\(end.errors)")
    #expect(try await Self.stream(server, "--resume").finish().code == 3)
  }
}
