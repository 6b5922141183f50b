// SPDX-License-Identifier: Apache-2.0

/// What is wrong with a request, according to the ledgers of its client and of all servers.
enum SoakFinding: String, CaseIterable, Sendable {
  case neverEnded = "requests that never ended"
  case endedTwice = "requests that ended more than once"
  case lost = "answered requests that no handler ran"
  case ranTwice = "requests that ran more than once"
  case ranThoughNotSent = "requests that ran, though reported as not sent"
  case ranThoughRefused = "requests that ran, though reported as refused"
  case paidTwice = "payments that were made more than once"
  case wrongReceipt = "payments whose answer or record is not their receipt"
  case unexpectedAnswer = "requests that got an unexpected response"
  case unknown = "executions of unknown requests"
  case doubled = "broadcasts that came twice to a client"
  case missed = "broadcasts that did not come over a client's one connection"
}

/// How many payments there were.
struct SoakPaymentCounts {
  var asked = 0
  var made = 0
  /// Answers that a client got again.
  var repeated = 0
  /// Runs after the first one, whose end was unknown.
  var ranAgain = 0
  /// Records that are left.
  var kept = 0
}

/// Compares the outcomes that clients saw with what servers did.
struct SoakVerdict {
  private struct Entry {
    var kind: SoakKind?
    var endings = 0
    var outcome: SoakOutcome?
    var executions = 0
    var paid: [UInt64] = []
    /// The receipts in the server's record, and those that the client got.
    var kept: [UInt64] = []
    var answers: [UInt64] = []
  }

  private(set) var keys: [SoakFinding: [UInt64]] = [:]
  private(set) var started = 0
  private(set) var outcomes: [SoakOutcome: Int] = [:]
  private(set) var pushes = 0
  private(set) var executions = 0
  private(set) var broadcasts = SoakBroadcasts()
  /// Idempotent requests that ran more than once.
  private(set) var ranAgain = 0
  private(set) var payments = SoakPaymentCounts()

  /// Checks all lines of all ledgers, in any order.
  init(_ records: some Sequence<SoakRecord>) {
    var entries: [UInt64: Entry] = [:]
    for record in records {
      switch record.event {
      case .started(let kind): entries[record.key, default: Entry()].kind = kind
      case .executed: entries[record.key, default: Entry()].executions += 1
      case .ended(let outcome):
        entries[record.key, default: Entry()].endings += 1
        entries[record.key, default: Entry()].outcome = outcome
      case .received(let client, let stretch):
        broadcasts.received(record.key, by: client, in: stretch)
      case .withheld: broadcasts.withheld(record.key)
      case .paid(let receipt): entries[record.key, default: Entry()].paid.append(receipt)
      case .kept(let receipt): entries[record.key, default: Entry()].kept.append(receipt)
      case .answered(let receipt): entries[record.key, default: Entry()].answers.append(receipt)
      }
    }
    for key in entries.keys.sorted() { judge(key, entries[key]!) }
    keys[.doubled] = broadcasts.doubled
    keys[.missed] = broadcasts.missed
  }

  private mutating func judge(_ key: UInt64, _ entry: Entry) {
    executions += entry.executions
    guard let kind = entry.kind else {
      keys[.unknown, default: []].append(key)
      return
    }
    if kind == .idempotent, entry.executions > 1 { ranAgain += 1 }
    if kind.isPayment {
      payments.asked += 1
      payments.made += entry.paid.isEmpty ? 0 : 1
      payments.repeated += max(0, entry.answers.count - 1)
      payments.ranAgain += max(0, entry.executions - 1)
      payments.kept += entry.kept.count
    }
    if kind == .push { pushes += 1 } else { started += 1 }
    if let outcome = entry.outcome, kind != .push { outcomes[outcome, default: 0] += 1 }
    for finding in SoakVerdict.findings(entry, kind) { keys[finding, default: []].append(key) }
  }

  private static func findings(_ entry: Entry, _ kind: SoakKind) -> [SoakFinding] {
    var findings: [SoakFinding] = []
    if entry.endings == 0 { findings.append(.neverEnded) }
    if entry.endings > 1 { findings.append(.endedTwice) }
    if entry.executions > 1, kind != .idempotent, kind != .transfer { findings.append(.ranTwice) }
    if entry.paid.count > 1 { findings.append(.paidTwice) }
    let isReceipt = entry.paid.contains
    if !entry.kept.allSatisfy(isReceipt) || !entry.answers.allSatisfy(isReceipt) {
      findings.append(.wrongReceipt)
    }
    switch entry.outcome {
    case .succeeded where kind != .push, .answered:
      if entry.executions == 0 { findings.append(.lost) }
    case .notSent:
      if entry.executions > 0 { findings.append(.ranThoughNotSent) }
    case .refused:
      if entry.executions > 0 { findings.append(.ranThoughRefused) }
    case .unexpected:
      findings.append(.unexpectedAnswer)
    case .succeeded, .sent, nil:
      // A push that was queued, or a request whose connection was lost, may or may not have run.
      break
    }
    return findings
  }

  func count(_ finding: SoakFinding) -> Int { keys[finding]?.count ?? 0 }

  var isClean: Bool { keys.isEmpty }
}
