// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import LongLinkSoak

/// The soak: that it passes, and that what it judges by can fail.
@Suite(.timeLimit(.minutes(15))) struct SoakTests {
  @Test func `a short soak finds nothing`() async throws {
    let soak = try Tool(
      ["--minutes", "0.25", "--clients", "24", "--rate", "4"], holdsInput: true,
      program: Tool.soak)
    let end = await soak.finish()
    #expect(end.code == 0, "\(end.text)\(end.errors)")
    #expect(!end.text.contains("FAILED"))
    let rows = end.lines.filter { $0.hasSuffix("  ok") }
    #expect(rows.count >= SoakFinding.allCases.count + 2)
    let payments = try #require(end.lines.first { $0.hasPrefix("payments: ") })
    // Asked for, made, and how often answers came again and handlers ran again.
    let counts = payments.split(separator: " ").compactMap { Int($0) }
    #expect(counts.count == 5 && counts[0] >= counts[1] && counts[1] > 0, "\(payments)")
    #expect(counts.count == 5 && counts[2] > 0, "\(payments)")
  }

  @Test func `a soak that is stopped leaves no process and no file behind`() async throws {
    let soak = try Tool(["--clients", "4"], holdsInput: true, program: Tool.soak)
    let line = try #require(await soak.send(SIGTERM, atLineWith: "servers on ports"))
    #expect(await soak.finish().code == 128 + SIGTERM)
    let folder = try #require(line.split(separator: " ").last.map(String.init))
    #expect(!FileManager.default.fileExists(atPath: folder))
    let ports = line.split(whereSeparator: { " ,;".contains($0) }).compactMap { UInt16($0) }
      .filter { $0 >= 20_000 }
    #expect(ports.count == 2)
    // A server is gone once nobody listens any more.
    for port in ports {
      while try await Tool.run("call", "1", "--port", "\(port)").code != 3 {
        try Task.checkCancellation()
      }
    }
  }

  @Test(arguments: [
    ["--servers", "1"], ["--minutes", "0.1"], ["--rate", "0"],
    ["--clients", "1", "--client-processes", "2"],
  ])
  func `a soak with impossible options is refused`(_ arguments: [String]) async throws {
    let end = try await Tool(arguments, program: Tool.soak).finish()
    #expect(end.code == 64)
  }

  private static func verdict(
    _ kind: SoakKind?, _ outcomes: [SoakOutcome], executions: Int
  ) -> SoakVerdict {
    var records: [SoakRecord] = []
    if let kind { records.append(SoakRecord(key: 7, .started(kind))) }
    records += outcomes.map { SoakRecord(key: 7, .ended($0)) }
    records += [SoakRecord](repeating: SoakRecord(key: 7, .executed), count: executions)
    return SoakVerdict(records)
  }

  @Test(arguments: [
    (SoakKind.small, SoakOutcome.succeeded, 1), (.rejected, .answered, 1),
    (.large, .refused, 0), (.unknown, .refused, 0), (.slow, .notSent, 0),
    (.slow, .sent, 0), (.slow, .sent, 1),
    (.idempotent, .succeeded, 1), (.idempotent, .succeeded, 2), (.idempotent, .sent, 3),
    (.push, .succeeded, 0), (.push, .succeeded, 1), (.push, .notSent, 0),
    (.charge, .succeeded, 1), (.transfer, .succeeded, 2),
  ])
  func `truthful ledgers pass`(
    _ kind: SoakKind, _ outcome: SoakOutcome, _ executions: Int
  ) {
    #expect(SoakTests.verdict(kind, [outcome], executions: executions).isClean)
  }

  @Test(arguments: [
    (SoakFinding.neverEnded, SoakKind.small as SoakKind?, [SoakOutcome](), 0),
    (.neverEnded, .small, [], 1),
    (.endedTwice, .small, [.succeeded, .succeeded], 1),
    (.endedTwice, .small, [.sent, .succeeded], 1),
    (.lost, .small, [.succeeded], 0),
    (.lost, .rejected, [.answered], 0),
    (.ranTwice, .small, [.succeeded], 2),
    (.ranTwice, .push, [.succeeded], 2),
    (.lost, .idempotent, [.succeeded], 0),
    (.ranThoughNotSent, .idempotent, [.notSent], 1),
    (.ranThoughNotSent, .slow, [.notSent], 1),
    (.ranThoughNotSent, .push, [.notSent], 1),
    (.ranThoughRefused, .small, [.refused], 1),
    (.unexpectedAnswer, .large, [.unexpected], 1),
    (.ranTwice, .charge, [.succeeded], 2),
    (.unknown, nil, [], 1),
  ])
  func `each contradiction in the ledgers is found`(
    _ finding: SoakFinding, _ kind: SoakKind?, _ outcomes: [SoakOutcome], _ executions: Int
  ) {
    let verdict = SoakTests.verdict(kind, outcomes, executions: executions)
    #expect(verdict.keys == [finding: [7]])
  }

  private static func broadcasts(
    _ receipts: [(UInt32, UInt32, UInt64)], withheld: [UInt64] = []
  ) -> [SoakFinding: [UInt64]] {
    func key(_ number: UInt64) -> UInt64 { SoakBroadcasts.key(run: 3, number: number) }
    var records = withheld.map { SoakRecord(key: key($0), .withheld) }
    for (client, stretch, number) in receipts {
      records.append(SoakRecord(key: key(number), .received(client: client, stretch: stretch)))
    }
    return SoakVerdict(records).keys.mapValues { keys in keys.map { $0 & 0xFF_FFFF } }
  }

  /// Receipts have a client, the stretch of its time, and the broadcast's number.
  @Test func `a broadcast that came twice, or not over a client's one connection, is found`() {
    let whole: [(UInt32, UInt32, UInt64)] = [(1, 1, 4), (1, 1, 6), (1, 1, 5), (2, 1, 9)]
    #expect(SoakTests.broadcasts(whole).isEmpty)
    #expect(SoakTests.broadcasts(whole + [(1, 1, 8)]) == [.missed: [7]])
    #expect(SoakTests.broadcasts(whole + [(1, 1, 8)], withheld: [7]).isEmpty)
    // What was sent between two connections need not come.
    #expect(SoakTests.broadcasts(whole + [(1, 2, 8), (1, 2, 9)]).isEmpty)
    #expect(SoakTests.broadcasts(whole + [(1, 0, 8), (1, 0, 10)]).isEmpty)
    // Nothing comes again, over whichever connection.
    #expect(SoakTests.broadcasts(whole + [(1, 2, 6)]) == [.doubled: [6]])
    #expect(SoakTests.broadcasts(whole + [(1, 0, 6)]) == [.doubled: [6]])
  }

  @Test func `an item that comes again, or is left out, is found`() {
    var streams = SoakStreams()
    for number in [1, 2, 2, 3, 5] as [UInt64] { streams.took(number) }
    #expect(streams.items == 5 && streams.wrong == 2)
  }

  @Test(arguments: [
    (SoakOutcome.succeeded, [5], [5, 5], [] as [SoakFinding]),
    (.sent, [5], [5], []), (.sent, [5], [], []), (.sent, [], [], []),
    (.succeeded, [5, 6], [5], [.paidTwice]),
    (.sent, [5, 5], [], [.paidTwice]),
    (.succeeded, [], [5], [.wrongReceipt]),
    (.succeeded, [5], [5, 6], [.wrongReceipt]),
  ])
  func `a payment that was made twice, or whose answers differ, is found`(
    _ outcome: SoakOutcome, _ paid: [UInt64], _ answers: [UInt64], _ findings: [SoakFinding]
  ) {
    // A transfer may run again, if its first run has left nothing.
    let events: [SoakRecord.Event] =
      [.started(.transfer), .executed, .executed, .ended(outcome)] + paid.map { .paid($0) }
    for seen in [answers.map { SoakRecord.Event.answered($0) }, answers.map { .kept($0) }] {
      let verdict = SoakVerdict((events + seen).map { SoakRecord(key: 7, $0) })
      #expect(verdict.keys == Dictionary(uniqueKeysWithValues: findings.map { ($0, [7]) }))
    }
  }

  @Test func `a record is read as it was written`() {
    let events =
      SoakKind.allCases.map(SoakRecord.Event.started)
      + SoakOutcome.allCases.map(SoakRecord.Event.ended)
      + [.executed, .withheld, .received(client: 0x01_0203, stretch: 0x0A_0B0C)]
      + [.paid(0x01_0203_0405), .kept(1 << 48 - 1), .answered(0)]
    for event in events {
      let record = SoakRecord(key: 0x0123_4567_89AB_CDEF, event)
      #expect(record.bytes.count == SoakRecord.size)
      #expect(SoakRecord(record.bytes) == record)
    }
    #expect(SoakRecord([UInt8](repeating: 0, count: SoakRecord.size)) == nil)
    #expect(SoakRecord([UInt8](repeating: 3, count: 15)) == nil)
  }

  @Test func `memory that grows is found, and each check fails alone`() {
    var result = SoakResult()
    var flat = UsageSeries()
    var growing = UsageSeries()
    for second in 0..<90 {
      flat.append(resident: 30 << 20)
      growing.append(resident: (30 + second / 4) << 20)
    }
    result.usage = ["flat": flat, "growing": growing]
    result.descriptors = (100, 100)
    let failed = result.checks(clients: 1).filter { !$0.holds }.map(\.subject)
    #expect(failed == ["resident memory of growing, first and last third"])
    result.usage = [:]
    result.descriptors.last = 109
    #expect(result.checks(clients: 1).filter { !$0.holds }.count == 1)
    result.descriptors.last = 100
    result.report.connects = 2
    #expect(result.checks(clients: 1).filter { !$0.holds }.map(\.subject) == ["connects"])
    result.faults = [.kill: 1]
    result.report.failedAttempts = 5
    #expect(result.checks(clients: 1).filter { !$0.holds }.map(\.subject) == ["failed attempts"])
  }

  @Test func `a seed determines the plan, and the first server is never ended`() {
    let make = { (seed: UInt64) in
      SoakPlan(seed: seed, lasting: .seconds(60), servers: 3, clientProcesses: 2)
    }
    #expect(make(5) == make(5))
    #expect(make(5) != make(6))
    let faults = make(5).faults
    #expect(SoakPlan.Kind.allCases.allSatisfy { kind in faults.contains { $0.kind == kind } })
    for fault in faults {
      #expect(fault.start + fault.length < .seconds(60))
      if fault.kind == .kill || fault.kind == .drain { #expect(fault.target > 0) }
    }
  }
}
