// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkDemoMessages
import Testing

/// A `longlink serve` under attack, and what it has used since its start.
final class AttackedServer {
  let port: String
  private let server: RunningServer
  private let honest: HonestClient
  private let residentBefore: Int

  init(_ options: String...) async throws {
    server = try await RunningServer(options)
    port = server.port
    honest = try HonestClient(port: port)
    residentBefore = try AttackedServer.kibibytes("VmRSS", of: server.tool.id)
  }

  /// Why an attack cannot be judged here.
  static var problem: String? {
    FileManager.default.fileExists(atPath: "/proc/self/status") ? nil : "there is no /proc"
  }

  /// Whether another program than the one beside the tests is attacked, as by `make attacks`.
  static var isOptimized: Bool {
    ProcessInfo.processInfo.environment["LONGLINK_BINARY"] != nil
  }

  /// Seconds of processor time that the server has used.
  var processorTime: Double {
    get throws {
      let text = try String(contentsOfFile: "/proc/\(server.tool.id)/stat", encoding: .utf8)
      // The name in parentheses may hold blanks (proc(5)).
      let fields = text[text.lastIndex(of: ")")!...].split(separator: " ")
      let ticks = try #require(Double(fields[12])) + #require(Double(fields[13]))
      return ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
    }
  }

  /// Resident memory now, in MiB more than before the attack.
  var growth: Int {
    get throws {
      try (AttackedServer.kibibytes("VmRSS", of: server.tool.id) - residentBefore) / 1024
    }
  }

  /// Waits until the server has answered an honest request that was sent after all of the attack,
  /// and returns what it has counted: that shows what has arrived of the attack.
  @discardableResult
  func settle() async throws -> StatsReply {
    try await server.stats()
  }

  /// Ends the server and judges what the attack has cost: memory, log lines, and what became of an
  /// honest client meanwhile.
  func judge(
    growth limit: Int = 150, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let honest = await honest.finish()
    let peak = try AttackedServer.kibibytes("VmHWM", of: server.tool.id) - residentBefore
    server.tool.send(SIGKILL)
    let log = await server.tool.finish().errors
    print(
      "attack: \(peak / 1024) MiB more at most, \(honest.answered) honest requests, the slowest "
        + "\(Int(honest.slowest * 1000)) ms, \(log.utf8.count) bytes of log")
    #expect(peak / 1024 < limit, "MiB", sourceLocation: sourceLocation)
    #expect(honest.failed == 0 && honest.answered > 0, sourceLocation: sourceLocation)
    #expect(log.utf8.count < 200_000, sourceLocation: sourceLocation)
    #expect(!log.contains("FORGED\n"), sourceLocation: sourceLocation)
    // A debug build on a busy machine is slow by itself; `make attacks` asks for two seconds.
    let latency = ProcessInfo.processInfo.environment["LONGLINK_ATTACK_SECONDS"]
    if let latency = latency.flatMap(Double.init) {
      #expect(honest.slowest < latency, "seconds", sourceLocation: sourceLocation)
    }
  }

  static func kibibytes(_ field: String, of process: Int32) throws -> Int {
    let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
    let line = try #require(status.split(separator: "\n").first { $0.hasPrefix(field) })
    return try #require(line.split(separator: " ").compactMap { Int($0) }.first)
  }
}
