// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkDriver
import LongLinkTestSupport
import Testing

@testable import LongLinkSoak

/// Packets that a filter drops between two network namespaces, where the machine has them.
@Suite(.serialized, .timeLimit(.minutes(15)), .unless(Namespaces.problem))
struct PacketLossTests {
  /// A server in one namespace, and clients under load in the other.
  private struct Field {
    static let clients = 4

    let namespaces: Namespaces
    let server: Tool
    let clients: Tool
    let folder: URL

    init() async throws {
      namespaces = try Namespaces()
      folder = FileManager.default.temporaryDirectory
        .appendingPathComponent("longlink-field-\(UUID().uuidString)")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      server = try Tool(
        ["server", "--host", Namespaces.nearAddress, "--ledger", Field.ledger(folder, 0)],
        holdsInput: true, launcher: namespaces.launcher(in: namespaces.near), program: Tool.soak)
      let line = try #require(await server.nextLine())
      let port = try #require(line.split(separator: ":").last)
      clients = try Tool(
        [
          "clients", "--clients", "\(Field.clients)", "--rate", "20", "--servers",
          "\(Namespaces.nearAddress):\(port)", "--ledger", Field.ledger(folder, 1),
        ], holdsInput: true, launcher: namespaces.launcher(in: namespaces.far),
        program: Tool.soak)
    }

    private static func ledger(_ folder: URL, _ index: Int) -> String {
      folder.appendingPathComponent("\(index)").path
    }

    /// Reads reports until one is as wanted, and returns it.
    func report(_ isWanted: (SoakReport) -> Bool) async throws -> SoakReport {
      while true {
        let line = try #require(await clients.nextLine(), "the clients have ended")
        let report = try JSONDecoder().decode(SoakReport.self, from: Data(line.utf8))
        if isWanted(report) { return report }
      }
    }

    /// Ends everything in good order, and judges.
    func finish() async throws -> SoakVerdict {
      try clients.write(Array("stop\n".utf8))
      #expect(await clients.finish().code == 0)
      server.send(SIGTERM)
      #expect(await server.finish().code == 0)
      return try SoakVerdict(
        (0...1).flatMap { try SoakLedger.records(in: Field.ledger(folder, $0)) })
    }

    func remove() {
      clients.send(SIGKILL)
      server.send(SIGKILL)
      namespaces.remove()
      try? FileManager.default.removeItem(at: folder)
    }
  }

  private static func run(_ body: (Field) async throws -> Void) async throws {
    let field = try await Field()
    defer { field.remove() }
    try await body(field)
  }

  @Test func `the loss of all packets is noticed within the bound, and nothing runs twice`()
    async throws
  {
    try await PacketLossTests.run { field in
      let before = try await field.report { $0.connected == Field.clients && $0.ended > 100 }
      let clock = ContinuousClock()
      let cut = clock.now
      try field.namespaces.cut()
      // The clients write all the while: what they write must not count as life.
      var reports = 0
      _ = try await field.report { report in
        reports += 1
        return report.connected == 0
      }
      #expect(clock.now - cut >= SoakTiming.heartbeat.interval)
      // A report comes every half second of a process that can run; a busy machine delays both the
      // reports and the end of the links. Simulations hold the exact bound; here it is enough that
      // the kernel's own, 15 minutes on Linux, is far away.
      let bound = SoakTiming.heartbeat.interval + SoakTiming.heartbeat.timeout
      #expect(Duration.milliseconds(500) * reports <= bound + .seconds(60), "\(reports) reports")
      try field.namespaces.heal()
      let after = try await field.report { $0.connected == Field.clients }
      #expect(after.connects >= before.connects + UInt64(Field.clients))
      let end = try await field.report { $0.ended > after.ended + 100 }
      #expect(end.violations == 0)
      let verdict = try await field.finish()
      #expect(verdict.isClean, "\(verdict.keys)")
      #expect(verdict.started > 200)
      #expect(verdict.outcomes[.sent, default: 0] > 0)
    }
  }

  @Test func `requests succeed while one packet in twenty is lost`() async throws {
    try await PacketLossTests.run { field in
      let before = try await field.report { $0.connected == Field.clients }
      try field.namespaces.lose(0.05)
      let end = try await field.report { $0.ended > before.ended + 600 }
      #expect(end.violations == 0)
      try field.namespaces.heal()
      let verdict = try await field.finish()
      #expect(verdict.isClean, "\(verdict.keys)")
      #expect(verdict.outcomes[.succeeded, default: 0] > 300)
    }
  }
}
