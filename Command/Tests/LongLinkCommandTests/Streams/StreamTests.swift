// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkDemoMessages
import LongLinkDriver
import LongLinkProtobufC
import Testing

/// What `longlink stream` prints and sends, and how it ends.
@Suite(.timeLimit(.minutes(15))) struct StreamTests {
  /// A day: whoever waits for it waits until it is cancelled.
  private static let day: UInt32 = 86_400_000

  private func stream(
    _ server: RunningServer, _ arguments: String..., input: [UInt8] = []
  ) async throws -> Finished {
    try await Tool(["stream", "--port", server.port] + arguments, input: input).finish()
  }

  private func count(_ count: UInt32, interval: UInt32 = 0) throws -> String {
    try CountRequest(count: count, intervalMilliseconds: interval).hex
  }

  // MARK: - Output

  @Test func `each item is a line, with escapes for what could control a terminal`() async throws {
    let server = try await RunningServer()
    let stream = try await stream(server, "6", "--hex", try count(3))
    #expect(stream.text == "\\u{08}\\u{01}\n\\u{08}\\u{02}\n\\u{08}\\u{03}\n")
    #expect(stream.errors.isEmpty)
    #expect(stream.code == 0)
  }

  @Test func `raw items are bytes and nothing else`() async throws {
    let server = try await RunningServer()
    let stream = try await stream(server, "6", "--hex", try count(2), "--raw")
    #expect(stream.output == [8, 1, 8, 2])
    let feed = try FeedRequest(format: "json", nodes: 2).hex
    let document = try await self.stream(server, "9", "--hex", feed, "--raw")
    #expect(document.text == #"[{"name":"café 1"},{"name":"café 2"}]"#)
  }

  private struct Record: Decodable {
    let number: Int?
    let milliseconds: Double
    let body: Data
  }

  private func records(_ stream: Finished) throws -> [Record] {
    try stream.lines.map { line in
      // Each key is there, whatever its value.
      let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      #expect(object?.keys.sorted() == ["body", "milliseconds", "number"])
      return try JSONDecoder().decode(Record.self, from: Data(line.utf8))
    }
  }

  @Test func `JSON has one object for each item`() async throws {
    let server = try await RunningServer()
    let records = try records(
      await stream(server, "6", "--hex", try count(3), "--json"))
    #expect(records.map(\.number) == [1, 2, 3])
    #expect(records.map(\.body) == [1, 2, 3].map { Data([8, $0]) })
    let times = records.map(\.milliseconds)
    #expect(times[0] > 0 && times == times.sorted(), "\(times)")
  }

  @Test func `the body of a response follows the items`() async throws {
    let server = try await RunningServer()
    let input = Array("one\n\nthree".utf8)
    let reply = try await stream(server, "7", "--upload", "--raw", input: input)
    let sum = SumReply(items: 3, bytes: 8, adler32: 0x0F49_035B)
    #expect(try SumReply(copying: reply.output) == sum)
    let json = try await stream(server, "7", "--upload", "--json", input: input)
    let record = try #require(try records(json).first)
    #expect(record.number == nil && record.body == Data(reply.output))
  }

  @Test func `each line of standard input is an item`() async throws {
    let server = try await RunningServer()
    let long = String(repeating: "long", count: 100_000)
    let text = "a\n\n\(long)\n\r\nend"
    let lines = try await stream(server, "8", "--items", input: Array(text.utf8))
    #expect(lines.text == "a\n\n\(long)\n\\r\nend\n")
    #expect(lines.code == 0)
    #expect(try await stream(server, "8", "--items").output.isEmpty)
    #expect(try await stream(server, "8", "--items", input: [10, 10]).output == [10, 10])
  }

  @Test func `an item is sent as soon as its line is complete`() async throws {
    let server = try await RunningServer()
    let stream = try Tool(["stream", "8", "--items", "--port", server.port], holdsInput: true)
    try stream.write(Array("one\nha".utf8))
    #expect(await stream.nextLine() == "one")
    try stream.write(Array("lf\n".utf8))
    #expect(await stream.nextLine() == "half")
  }

  // MARK: - The end

  @Test func `a limit cancels the stream`() async throws {
    let server = try await RunningServer()
    let stream = try await stream(
      server, "6", "--hex", try count(9, interval: StreamTests.day), "--limit", "1")
    #expect(stream.lines.count == 1)
    #expect(stream.errors.isEmpty)
    #expect(stream.code == 0)
    while try await server.stats().requestsCancelled != 1 { try Task.checkCancellation() }
    #expect(try await server.stats().protocolViolations == 0)
  }

  @Test func `a limit ends a stream whose lines never end`() async throws {
    let server = try await RunningServer()
    let stream = try Tool(
      ["stream", "8", "--items", "--limit", "2", "--port", server.port],
      input: Array("a\nb\nc\n".utf8), holdsInput: true)
    let end = await stream.finish()
    #expect(end.text == "a\nb\n")
    #expect(end.code == 0)
  }

  @Test func `an error in band is printed as by call, behind the items`() async throws {
    let server = try await RunningServer()
    for (code, detail) in [(UInt32(503), "no more"), (1042, "no\ntickets\u{1B}[2K")] {
      let request = try CountRequest(
        count: 5, failAfter: 2, failCode: code, failDetail: detail
      ).hex
      let stream = try await stream(server, "6", "--hex", request)
      #expect(stream.lines.count == 2)
      #expect(stream.code == 5)
      let fail = try FailRequest(code: code, detail: detail).hex
      let call = try await server.call("4", "--hex", fail)
      let expected = call.errors
        .replacing("type=4", with: "type=6")
        .replacing("delivery: answered", with: "delivery: answered; items received: 2")
      #expect(stream.errors == expected)
    }
  }

  @Test func `a refused request ends with 5`() async throws {
    let server = try await RunningServer()
    let unknown = try await stream(server, "99")
    #expect(unknown.code == 5 && unknown.errors.contains("rejected 404"))
    let shape = try await stream(server, "7", "--items")
    #expect(shape.code == 5 && shape.errors.contains("items from the caller"))
  }

  @Test func `a server without streams gets no request`() async throws {
    let peer = try ScriptedPeer { connection in
      connection.greet()
      connection.readToEnd()
    }
    let stream = try await Tool.run("stream", "6", "--port", peer.port)
    #expect(stream.code == 1)
    #expect(stream.errors.contains("unsupported") && stream.errors.contains("delivery: notSent"))
  }

  @Test func `a deadline ends with 4, and covers the connect`() async throws {
    let server = try await RunningServer()
    let request = try count(2, interval: StreamTests.day)
    let stream = try await stream(server, "6", "--hex", request, "--deadline", "0.5")
    #expect(stream.code == 4)
    let peer = try ScriptedPeer { $0.readToEnd() }
    let silent = try await Tool.run("stream", "6", "--port", peer.port, "--deadline", "0.25")
    #expect(silent.code == 4)
    #expect(silent.output.isEmpty)
  }

  @Test func `a server that does not listen ends with 3, and one that is killed with 7`()
    async throws
  {
    let server = try await RunningServer()
    let stream = try Tool([
      "stream", "6", "--port", server.port, "--hex", try count(2, interval: StreamTests.day),
    ])
    #expect(await stream.nextLine() != nil)
    server.tool.send(SIGKILL)
    let end = await stream.finish()
    #expect(end.code == 7)
    #expect(end.output.isEmpty)
    #expect(end.errors.contains("items received: 1"))
    #expect(try await self.stream(server, "6").code == 3)
  }

  @Test func `a line over the server's limit ends with 5`() async throws {
    let server = try await RunningServer("--max-body", "100")
    let line = [UInt8](repeating: 65, count: 101)
    let stream = try await stream(server, "8", "--items", input: line)
    #expect(stream.code == 5)
    #expect(stream.errors.contains("tooLarge"))
  }

  @Test func `a reader that has gone ends the stream`() async throws {
    let server = try await RunningServer()
    let stream = try Tool([
      "stream", "6", "--port", server.port, "--hex", try count(.max),
    ])
    #expect(await stream.nextLine() != nil)
    stream.send(SIGTERM)
    #expect(await stream.finish().code == nil)
    while try await server.stats().requestsRunning != 1 { try Task.checkCancellation() }
  }

  @Test(arguments: [
    [], ["x"], ["6", "--limit", "0"], ["6", "--deadline", "0"], ["6", "--json", "--raw"],
    ["8", "-", "--items"], ["7", "-", "--upload"], ["7", "--items", "--upload"],
    ["7", "--upload", "--limit", "1"], ["6", "--text", "a", "--hex", "00"], ["6", "--count", "2"],
    ["8", "--items", "--resume"], ["7", "--upload", "--resume"],
    ["6", "--file", "/no/such/file"],
  ])
  func `wrong arguments end with 64`(_ arguments: [String]) async throws {
    let tool = try await Tool(["stream"] + arguments).finish()
    #expect(tool.code == 64)
    #expect(tool.output.isEmpty)
    #expect(!tool.errors.isEmpty)
  }
}
