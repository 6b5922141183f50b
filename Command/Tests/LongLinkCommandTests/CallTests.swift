// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkDemoMessages
import Testing

/// What `longlink call` prints.
@Suite(.timeLimit(.minutes(15))) struct CallTests {
  @Test func `only the body of a response goes to standard output`() async throws {
    let server = try await RunningServer()
    let call = try await server.call("1", "--text", "hello")
    #expect(call.text == "hello")
    #expect(call.errors.isEmpty)
    #expect(call.code == 0)
  }

  @Test func `a body comes from text, hexadecimal, a file or standard input`() async throws {
    let server = try await RunningServer()
    let bytes: [UInt8] = [0, 0xFF, 0x0A, 0x80]
    let file = FileManager.default.temporaryDirectory
      .appendingPathComponent("longlink-\(UUID().uuidString)")
    try Data(bytes).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }

    #expect(try await server.call("1").output == [])
    #expect(try await server.call("1", "--text", "-v").text == "-v")
    #expect(try await server.call("1", "--hex", "00fF0a80").output == bytes)
    #expect(try await server.call("1", "--file", file.path).output == bytes)
    #expect(try await server.call("1", "-", input: bytes).output == bytes)
  }

  @Test func `several bodies have a newline each, in the order of the requests`() async throws {
    let server = try await RunningServer()
    let call = try await server.call(
      "1", "--text", "x", "--count", "50", "--in-flight", "7")
    #expect(call.text == String(repeating: "x\n", count: 50))
    #expect(call.code == 0)
  }

  @Test func `no more requests than allowed are in flight`() async throws {
    let server = try await RunningServer()
    let request = try SleepRequest(milliseconds: 20).hex
    let call = try await server.call(
      "2", "--hex", request, "--count", "6", "--in-flight", "2", "--json")
    #expect(call.lines.count == 6)
    // Two at once: at most every second one can have been written before an earlier one's answer.
    #expect(try await server.stats().requestsReceived == 7)
  }

  private struct Record: Decodable, Equatable {
    let serial: UInt32?
    let code: UInt32?
    let refused: Bool
    let delivery: String
    let milliseconds: Double
    let body: Data
  }

  private func records(_ call: Finished) throws -> [Record] {
    try call.lines.map { line in
      // Each key is there, whatever its value.
      let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      #expect(
        object?.keys.sorted()
          == ["body", "code", "delivery", "milliseconds", "refused", "replayed", "serial"])
      return try JSONDecoder().decode(Record.self, from: Data(line.utf8))
    }
  }

  @Test func `JSON has one object for each request`() async throws {
    let server = try await RunningServer()
    let answered = try records(
      await server.call("1", "--text", "\n é", "--count", "3", "--json"))
    #expect(answered.map(\.serial) == [50, 51, 52])
    for record in answered {
      #expect(record.code == 200)
      #expect(!record.refused)
      #expect(record.delivery == "answered")
      #expect(record.milliseconds > 0)
      #expect(record.body == Data("\n é".utf8))
    }
  }

  @Test func `JSON states the delivery of a request that failed`() async throws {
    let server = try await RunningServer()
    let unknown = try #require(try records(await server.call("99", "--json")).first)
    #expect(unknown.code == 404)
    #expect(unknown.refused)
    #expect(unknown.delivery == "refused")

    let body = try FailRequest(code: 5000, detail: "own").hex
    let failed = try #require(try records(await server.call("4", "--hex", body, "--json")).first)
    #expect(failed.code == 5000)
    #expect(!failed.refused)
    #expect(failed.delivery == "answered")
    #expect(failed.body == Data("own".utf8))

    let sleep = try SleepRequest(milliseconds: 60_000).hex
    let late = try await server.call("2", "--hex", sleep, "--timeout", "0.3", "--json")
    let record = try #require(try records(late).first)
    #expect(record.code == nil)
    #expect(record.delivery == "sent")
    #expect(late.code == 4)
  }

  @Test func `JSON has one object for each request that could not be made`() async throws {
    let peer = try await RunningServer()
    peer.tool.send(SIGKILL)
    _ = await peer.tool.finish()
    let call = try await peer.call("1", "--count", "2", "--json")
    #expect(try records(call).map(\.delivery) == ["notSent", "notSent"])
    #expect(call.code == 3)
  }
}
