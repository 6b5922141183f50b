// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLink
import Testing

/// The server as a process, which gets signals.
@Suite struct SignalTests {
  /// A process that is killed with whoever holds it.
  private final class Service {
    let process = Process()
    private let log = Pipe()

    init(_ file: URL) throws {
      let tests = CommandLine.arguments.first { $0.hasSuffix(".xctest") } ?? Bundle.main.bundlePath
      process.executableURL = URL(filePath: tests).deletingLastPathComponent()
        .appending(path: "EchoService")
      process.arguments = [file.path]
      process.environment = ["SERVER_LISTEN": "127.0.0.1:0", "OPERATIONS_PORT": "0"]
      process.standardError = log
      try process.run()
    }

    deinit {
      if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }

    func send(_ signal: Int32) { kill(process.processIdentifier, signal) }

    /// Reads the log up to the line that has these words, and returns that line.
    func line(with words: String) throws -> String {
      var line: [UInt8] = []
      while let byte = try log.fileHandleForReading.read(upToCount: 1)?.first {
        line.append(byte)
        guard byte == UInt8(ascii: "\n") else { continue }
        let text = String(decoding: line, as: UTF8.self)
        if text.contains(words) { return text }
        line = []
      }
      throw Missing(words: words)
    }
  }

  private struct Missing: Error {
    let words: String
  }

  @Test func `at SIGTERM it is not ready, answers what it has, and ends with 0`() async throws {
    let file = FileManager.default.temporaryDirectory.appending(path: "service-\(UUID()).json")
    try #"{"server": {"logLevel": "info"}}"#.write(to: file, atomically: true, encoding: .utf8)
    defer { try? FileManager.default.removeItem(at: file) }
    let service = try Service(file)
    _ = try service.line(with: "Listening for operators")
    let ready = try service.line(with: "Ready on 127.0.0.1:")
    let port = try #require(ready.split(separator: ":").last.flatMap { UInt16($0.trimmed) })
    let client = try LongLinkClient(to: .host("127.0.0.1", port: port))
    #expect(try await client.request(1, [1]) == [1])

    try #"{"server": {"logLevel": "debug"}}"#.write(to: file, atomically: true, encoding: .utf8)
    service.send(SIGHUP)
    _ = try service.line(with: "Configuration changed")

    let reply = client.submit(1, [2])
    service.send(SIGTERM)
    _ = try service.line(with: "Not ready")
    #expect(try await reply.value == [2])
    _ = try service.line(with: "Stopped")
    service.process.waitUntilExit()
    #expect(service.process.terminationReason == .exit && service.process.terminationStatus == 0)
    await client.close()
  }
}

extension Substring {
  fileprivate var trimmed: String { trimmingCharacters(in: .whitespacesAndNewlines) }
}
