// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkDemoMessages
import LongLinkDriver
import LongLinkProtobufC
import Testing

/// `longlink stream --resume`, with servers that end while it reads.
@Suite(.timeLimit(.minutes(2))) struct ResumeTests {
  /// Asks for items, with time between them to end the server.
  private static func stream(
    _ server: RunningServer, count: UInt32 = 10, _ arguments: String...
  ) throws -> Tool {
    let request = try CountRequest(count: count, intervalMilliseconds: 250).hex
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

  /// The items take longer than a server that drains waits for them.
  @Test(arguments: [(SIGKILL, 2, 10), (SIGTERM, 1, 40)])
  func `a stream outlives its servers, and each item comes once`(
    _ signal: Int32, _ restarts: Int, _ count: UInt32
  ) async throws {
    var servers = [try await RunningServer()]
    let port = servers[0].port
    let stream = try Self.stream(servers[0], count: count, "--resume")
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
      if signal == SIGKILL {
        #expect(report.contains("attempt 1 after") && report.contains("connectionLost"))
      }
    }
    let end = await stream.finish()
    #expect(end.code == 0)
    #expect(end.errors.isEmpty)
    #expect(try Self.numbers(lines + end.lines) == Array(1...UInt64(count)))
  }

  @Test func `without the option a stream ends with its server`() async throws {
    let server = try await RunningServer()
    let stream = try Self.stream(server)
    let first = try #require(await stream.nextLine())
    server.tool.send(SIGKILL)
    let end = await stream.finish()
    #expect(end.code == 7)
    #expect(try Self.numbers([first] + end.lines).count < 10)
  }

  @Test func `other message types get the same request again`() async throws {
    let server = try await RunningServer()
    let request = try FeedRequest(format: "json", nodes: 9, intervalMilliseconds: 100).hex
    let stream = try Tool([
      "stream", "9", "--port", server.port, "--hex", request, "--json", "--resume",
    ])
    let first = try #require(await stream.nextLine())
    server.tool.send(SIGKILL)
    _ = await server.tool.finish()
    let next = try await RunningServer("--port", server.port)
    let end = await stream.finish()
    withExtendedLifetime(next) {}
    #expect(end.code == 0)
    let records = try ([first] + end.lines).map { line in
      try JSONDecoder().decode(Record.self, from: Data(line.utf8))
    }
    #expect(records.map(\.number) == Array(1...records.count))
    let text = String(decoding: records.reduce(into: Data()) { $0 += $1.body }, as: UTF8.self)
    #expect(text.count { $0 == "[" } == 2 && text.hasSuffix("]"), "\(text)")
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
