// SPDX-License-Identifier: Apache-2.0

#if HTTP && Operations
import Foundation
import LongLinkScenarios
import Testing

/// `longlink serve --recordings`.
@Suite(.timeLimit(.minutes(15))) struct RecordingOptionTests {
  private let folder = FileManager.default.temporaryDirectory
    .appending(path: "longlink-recordings-\(UUID().uuidString)").path

  private var names: [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted()
  }

  private func read(_ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(filePath: folder + "/" + name)))
  }

  /// Waits for so many recordings that are complete, and returns their names.
  private func names(_ count: Int) async throws -> [String] {
    while true {
      let found = names.filter { $0.hasSuffix(".pcapng") }
      if found.count == count { return found }
      try Task.checkCancellation()
      await Task.yield()
    }
  }

  @Test(arguments: [false, true])
  func `a client that breaks a rule leaves a recording, which replays`(
    _ hasBodies: Bool
  ) async throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let server = try await RunningServer(
      ["--recordings", folder] + (hasBodies ? ["--record-bodies"] : []))
    #expect(try await server.call("1", "--text", "an echo").code == 0)
    try RawClient(port: server.port).sendAndRead([UInt8](repeating: 0xFF, count: 64))
    let name = try #require(try await names(1).first)
    #expect(name.hasPrefix("longlink-") && name.hasSuffix("Z-lengthOverLimit.pcapng"))
    let bytes = try read(name)
    #expect(String(decoding: bytes, as: UTF8.self).contains("an echo") == hasBodies)
    let recording = try RecordingFile(bytes)
    #expect(recording.damage == nil && recording.names[1] == "Echo")
    let outcomes = Replayer.replay(recording)
    #expect(outcomes.map(\.place.connection) == [1, 2])
    for (_, outcome) in outcomes {
      guard case .replayed(let steps) = outcome else {
        Issue.record("\(outcome)")
        continue
      }
      #expect(steps > 2)
    }
    server.tool.send(SIGTERM)
    #expect(await server.tool.finish().code == 0)
    #expect(names == [name])
  }

  @Test func `an operator gets recordings as downloads and files`() async throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let server = try await OperatedServer(
      "--recordings", folder, "--recordings-count", "2", "--recordings-bytes", "1000000",
      "--recorder", "65536")
    #expect(try await server.server.call("1", "--text", "x").code == 0)
    for _ in 0..<3 { #expect(try server.post("/recording").hasPrefix("HTTP/1.1 201 Created\r\n")) }
    #expect(try await names(2).allSatisfy { $0.hasSuffix("Z-operator.pcapng") })
    let fetched = try await Tool(["fetch", "\(server.url)/recording"]).finish()
    #expect(try RecordingFile(fetched.output).names[1] == "Echo")
  }

  @Test func `without a directory there are no files, and with no ring nothing`() async throws {
    let server = try await OperatedServer()
    #expect(try server.post("/recording").hasPrefix("HTTP/1.1 409 "))
    #expect(try server.get("/recording").hasPrefix("HTTP/1.1 200 "))
    let forgetful = try await OperatedServer("--recorder", "0", "--recordings", folder)
    #expect(try forgetful.post("/recording").hasPrefix("HTTP/1.1 404 "))
    #expect(try forgetful.get("/recording").hasPrefix("HTTP/1.1 404 "))
    #expect(names.isEmpty)
  }

  @Test func `wrong values are told, and end the command`() async throws {
    for (options, word) in [
      (["--recordings-count", "1"], "need --recordings"),
      (["--recordings-bytes", "65536"], "need --recordings"),
      (["--recordings", folder, "--recordings-count", "0"], "at least 1"),
      (["--recordings", folder, "--recordings-count", "10001"], "10,000"),
      (["--recordings", folder, "--recordings-bytes", "1"], "65,536"),
      (["--recordings", folder, "--recordings-bytes", "x"], "at least 1"),
      (["--recordings", ""], "empty"), (["--recorder", "100"], "16,384"),
      (["--recorder", "-1"], "not a number of bytes"),
    ] {
      let end = try await Tool(["serve", "--port", "0"] + options).finish()
      #expect(end.code == 64 && end.errors.contains(word), "\(end.errors)")
      #expect(end.output.isEmpty)
    }
  }
}

extension OperatedServer {
  /// Sends a `POST`, and returns the whole answer.
  fileprivate func post(_ path: String) throws -> String {
    let head = "POST \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    let answer = try RawClient(port: port).sendAndRead(Array(head.utf8))
    return String(decoding: answer, as: UTF8.self)
  }
}
#endif
