// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkDemoMessages
import LongLinkTestSupport
import Testing

/// The server and the client of the command against peers that were written from wire.md alone.
@Suite(.timeLimit(.minutes(15)), .unless(PythonPeer.problem)) struct StreamPeerTests {
  // MARK: - Requesters

  static let requester = [
    "count", "count_padded", "error_in_band", "malformed_requests", "padding_is_bounded",
    "sum_of_items", "sum_of_nothing", "relay", "feed", "withheld_credit", "credit_one_by_one",
    "random_credit", "random_fragments", "granted_to_an_item", "credit_default", "early_response",
    "cancelled", "cancelled_upload",
    "deadline", "cut_anywhere", "item_not_expected", "item_after_end", "item_cut_off",
    "credit_not_allowed", "credit_overflow", "credit_exceeded",
  ]

  @Test(arguments: requester)
  func `a requester of its own agrees with the server`(_ step: String) async throws {
    let server = try await RunningServer()
    let peer = try await PythonPeer.start("stream_requester", step, server.port).finish()
    #expect(peer.code == 0 && peer.lines == ["all is well"], "\(peer.text)\(peer.errors)")
    // Whatever it did, no work of it is left.
    while try await server.stats().requestsRunning != 1 { try Task.checkCancellation() }
  }

  @Test func `every step of the peers is a test`() async throws {
    #expect(try await PythonPeer.steps("stream_requester") == StreamPeerTests.requester)
    #expect(
      try await PythonPeer.steps("stream_responder")
        == StreamPeerTests.responder.map(\.step) + ["cut_anywhere"])
  }

  // MARK: - Responders

  struct Exchange: Sendable, CustomTestStringConvertible {
    let step: String
    let arguments: [String]
    var input = ""
    /// Whether standard input stays open behind these bytes.
    var holdsInput = false
    var output = ""
    var code: Int32 = 0
    /// What standard error contains.
    var errors = ""

    var testDescription: String { step }
  }

  private static let long = String(repeating: "x", count: 5_000)

  static let responder = [
    Exchange(
      step: "items", arguments: ["stream", "9", "--text", "ask"],
      output: "one\n\nline\\n\\u{1B}[2K \\xFF\ndone\n"),
    Exchange(step: "fragments", arguments: ["stream", "9"], output: "fragment\nnext\n"),
    Exchange(
      step: "large_items", arguments: ["stream", "9"],
      output: String(repeating: String(repeating: "x", count: 300_000) + "\n", count: 3)),
    Exchange(
      step: "relay", arguments: ["stream", "9", "--items"], input: "a\n\n\(long)\nend",
      output: "a\n\n\(long)\nend\n"),
    Exchange(
      step: "error_in_band", arguments: ["stream", "9"], output: "one\ntwo\n", code: 5,
      errors: "rejected 1042; delivery: answered; items received: 2 (no more \\u{1B}[2K)\n"),
    Exchange(
      step: "timed_out", arguments: ["stream", "9", "--deadline", "100"], output: "one\n",
      code: 4, errors: "rejected 408 (too slow)"),
    Exchange(
      step: "call_timed_out", arguments: ["call", "9"], code: 4,
      errors: "rejected 408 (too slow)"),
    Exchange(
      step: "silent", arguments: ["stream", "9", "--deadline", "0.5"], output: "one\n", code: 4,
      errors: "deadlineExceeded"),
    Exchange(
      step: "cancelled", arguments: ["stream", "9", "--limit", "2"], output: "one\ntwo\n"),
    Exchange(
      step: "withheld_credit", arguments: ["stream", "9", "--upload"],
      input: long + "\n" + String(repeating: "y\n", count: 200) + long + long,
      output: "202 items\n"),
    Exchange(
      step: "early_response", arguments: ["stream", "9", "--upload"], holdsInput: true,
      output: "enough\n"),
    Exchange(
      step: "early_within_item", arguments: ["stream", "9", "--upload"], input: long, code: 5,
      errors: "rejected 1042 (too much); delivery: answered"),
    Exchange(
      step: "item_not_asked_for", arguments: ["stream", "9", "--upload"], holdsInput: true,
      code: 6, errors: "itemNotExpected"),
    Exchange(
      step: "item_of_a_plain_request", arguments: ["call", "9"], code: 6,
      errors: "itemNotExpected"),
    Exchange(
      step: "item_cut_off", arguments: ["stream", "9"], code: 6, errors: "itemCutOff"),
    Exchange(
      step: "credit_not_announced", arguments: ["stream", "9"], code: 6,
      errors: "creditNotAllowed"),
    Exchange(
      step: "credit_of_zero", arguments: ["stream", "9", "--items"], holdsInput: true, code: 6,
      errors: "creditNotAllowed"),
    Exchange(
      step: "credit_of_a_plain_request", arguments: ["call", "9"], code: 6,
      errors: "creditNotAllowed"),
    Exchange(
      step: "credit_overflow", arguments: ["stream", "9", "--items"], holdsInput: true, code: 6,
      errors: "creditOverflow"),
    Exchange(
      step: "credit_exceeded", arguments: ["stream", "9"], code: 6, errors: "creditExceeded"),
    Exchange(
      step: "refused_after_item", arguments: ["stream", "9"], code: 6,
      errors: "refusedAfterItems"),
    Exchange(
      step: "refused_after_credit", arguments: ["stream", "9", "--upload"], holdsInput: true,
      code: 6, errors: "refusedAfterItems"),
  ]

  @Test(arguments: responder)
  func `a responder of its own agrees with the client`(_ exchange: Exchange) async throws {
    let peer = try PythonPeer.start("stream_responder", exchange.step)
    let port = try #require(await peer.nextLine())
    let tool = try Tool(
      exchange.arguments + ["--port", port], input: Array(exchange.input.utf8),
      holdsInput: exchange.holdsInput)
    let client = await tool.finish()
    let server = await peer.finish()
    #expect(server.code == 0 && server.lines == ["all is well"], "\(server.text)\(server.errors)")
    #expect(client.code == exchange.code, "\(client.errors)")
    // The item that went before a refusal may be printed or not.
    if exchange.code != 6 { #expect(client.text == exchange.output) }
    if exchange.errors.isEmpty {
      #expect(client.errors.isEmpty)
    } else {
      #expect(client.errors.contains(exchange.errors))
    }
  }

  @Test func `a stream that is cut off never looks complete, wherever that happens`() async throws {
    let peer = try PythonPeer.start("stream_responder", "cut_anywhere")
    let port = try #require(await peer.nextLine())
    // An item of one byte, and a response without any.
    let length = 17 + 16
    let ends = try await withThrowingTaskGroup(of: Finished.self) { group in
      var ends: [Finished] = []
      for index in 0...length {
        if index >= 4, let end = try await group.next() { ends.append(end) }
        group.addTask { try await Tool.run("stream", "9", "--port", port) }
      }
      for try await end in group { ends.append(end) }
      return ends
    }
    let server = await peer.finish()
    #expect(server.lines == ["all is well"], "\(server.text)\(server.errors)")
    // Only one of them got all of it.
    #expect(ends.count(where: { $0.code == 0 && $0.text == "a\n" }) == 1)
    let cut = ends.filter { $0.code == 6 || $0.code == 7 }
    #expect(cut.count == length, "\(ends.map(\.errors))")
    // The item itself was whole for some.
    #expect(cut.count(where: { $0.text == "a\n" }) == 16)
    #expect(cut.allSatisfy { !$0.errors.isEmpty })
  }
}
