// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkDemoMessages
import LongLinkDriver
import LongLinkProtobufC
import Testing

/// A folder with the files of a test, and calls of route 10 by the client whose identity is there.
struct OnceStage: Sendable {
  let folder: String

  static func run(_ body: (OnceStage) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "once-\(UUID())").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try await body(OnceStage(folder: folder))
  }

  func path(_ name: String) -> String { "\(folder)/\(name)" }

  /// The arguments of a call of route 10 that is to run once.
  func arguments(
    _ port: String, key: String = "k", delay: UInt32 = 0, _ options: [String] = []
  ) throws -> [String] {
    let body = try OnceRequest(key: Array(key.utf8), delayMilliseconds: delay).hex
    return [
      "call", "10", "--port", port, "--hex", body, "--once", "--json", "--timeout", "100",
      "--identity", path("identity"),
    ] + options
  }

  /// Makes a call of route 10.
  func call(
    _ server: RunningServer, key: String = "k", delay: UInt32 = 0, _ options: [String] = []
  ) async throws -> Finished {
    try await Tool(arguments(server.port, key: key, delay: delay, options)).finish()
  }

  var ticket: [String] { ["--ticket", path("ticket")] }
}

extension RunningServer {
  /// Waits until a request of a call runs, beside the one that asks, or has been answered.
  func untilRunning(_ call: Tool) async throws {
    while call.isRunning, try await stats().requestsRunning < 2 { try Task.checkCancellation() }
  }
}

/// The object of a call.
struct OnceRecord: Decodable, Equatable {
  let code: UInt32?
  let refused: Bool
  let delivery: String
  let replayed: Bool
  let body: Data

  init(_ call: Finished) throws {
    self = try JSONDecoder().decode(OnceRecord.self, from: Data(#require(call.lines.first).utf8))
  }

  /// How often the request has run.
  var runs: UInt64 {
    get throws { try LongLinkDemoMessages.OnceReply(copying: Array(body)).runs }
  }
}
