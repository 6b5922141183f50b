// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCommandSupport

/// The findings of a soak.
struct SoakResult: Sendable {
  /// Descriptions of what went wrong.
  var problems: [String] = []
  var faults: [SoakPlan.Kind: Int] = [:]
  var usage: [String: UsageSeries] = [:]
  var descriptors = (first: 0, last: 0)
  /// The time from the last fault until all clients were connected.
  var recovery = Duration.zero
  var report = SoakReport()
  var duration = Duration.zero
  var verdict = SoakVerdict([])
  /// How long servers took to end after SIGTERM.
  var shutdowns: [Duration] = []

  /// One line of the summary, with what was found and what is allowed.
  struct Check: Sendable {
    let subject: String
    let found: String
    let allowed: String
    let holds: Bool
  }

  /// The limit for all processes at the end, when as many connections are open as at first.
  static func mostDescriptors(after first: Int) -> Int { first + 8 }

  /// For each client its first connection, and for each fault two: one when it reconnects, and one
  /// when it goes back to the server that it prefers.
  func mostConnects(_ clients: Int) -> Int {
    clients * (1 + 2 * faults.values.reduce(0, +))
  }

  /// The attempts that the back-off allows each client while the longest fault lasts.
  func mostFailedAttempts(_ clients: Int) -> Int {
    clients * 4 * faults.values.reduce(0, +)
  }

  /// Each fault that delays a client or a server may let the credentials of all clients expire, and
  /// so may a busy machine.
  func mostExpired(_ clients: Int) -> Int {
    let delays = [SoakPlan.Kind.freeze, .pause, .partition].reduce(0) { $0 + (faults[$1] ?? 0) }
    return clients * (1 + delays)
  }

  /// A quarter of what clients show that renew each two seconds: they are not always connected.
  func fewestCredentials(_ clients: Int) -> Int {
    clients * Int(duration / SoakTiming.validity) / 4
  }

  private func checksOfStreams(_ clients: Int) -> [Check] {
    func none(_ subject: String, _ count: Int) -> Check {
      Check(subject: subject, found: "\(count)", allowed: "0", holds: count == 0)
    }
    let streams = report.streams
    let (expired, credentials) = (mostExpired(clients), fewestCredentials(clients))
    var checks = [
      none("items of streams that came twice, or not", streams.wrong),
      none("streams that did not come back", streams.ended),
      none("streams that a drain has cut off", streams.cutOff),
      Check(
        subject: "streams of expired credentials", found: "\(streams.expired)",
        allowed: "\(expired)", holds: streams.expired <= expired),
      Check(
        subject: "credentials, at least", found: "\(report.credentials)",
        allowed: "\(credentials)", holds: report.credentials >= credentials),
    ]
    if let longest = shutdowns.max() {
      let allowed = SoakTiming.drain + .seconds(1)
      checks.append(
        Check(
          subject: "the longest shutdown", found: longest.inSeconds, allowed: allowed.inSeconds,
          holds: longest <= allowed))
    }
    return checks
  }

  func checks(clients: Int) -> [Check] {
    var checks = SoakFinding.allCases.map { finding in
      let count = verdict.count(finding)
      return Check(subject: finding.rawValue, found: "\(count)", allowed: "0", holds: count == 0)
    }
    let most = (connects: mostConnects(clients), failed: mostFailedAttempts(clients))
    checks += [
      Check(
        subject: "connects", found: "\(report.connects)", allowed: "\(most.connects)",
        holds: report.connects <= most.connects),
      Check(
        subject: "failed attempts", found: "\(report.failedAttempts)", allowed: "\(most.failed)",
        holds: report.failedAttempts <= most.failed),
      Check(
        subject: "protocol violations", found: "\(report.violations)", allowed: "0",
        holds: report.violations == 0),
    ]
    checks += checksOfStreams(clients)
    if descriptors.first > 0 {
      let allowed = SoakResult.mostDescriptors(after: descriptors.first)
      checks.append(
        Check(
          subject: "descriptors, first and last", found: "\(descriptors.first) \(descriptors.last)",
          allowed: "\(allowed)", holds: descriptors.last <= allowed))
    }
    for (name, series) in usage.sorted(by: { $0.key < $1.key }) {
      guard let thirds = series.thirds else { continue }
      let allowed = UsageSeries.limit(after: thirds.first)
      checks.append(
        Check(
          subject: "resident memory of \(name), first and last third",
          found: "\(SoakResult.mebibytes(thirds.first)) \(SoakResult.mebibytes(thirds.last)) MiB",
          allowed: "\(SoakResult.mebibytes(allowed)) MiB", holds: thirds.last <= allowed))
    }
    return checks
  }

  private static func mebibytes(_ bytes: Int) -> String {
    let tenths = bytes * 10 / 1_048_576
    return "\(tenths / 10).\(tenths % 10)"
  }
}

/// The table that a soak prints at the end.
struct SoakSummary {
  let result: SoakResult
  let options: SoakOptions

  private var checks: [SoakResult.Check] { result.checks(clients: options.clients) }

  var holds: Bool { result.problems.isEmpty && checks.allSatisfy(\.holds) }

  var lines: [String] {
    let verdict = result.verdict
    let outcomes = SoakOutcome.allCases.map { $0.text(verdict.outcomes[$0] ?? 0) }
    let faults = SoakPlan.Kind.allCases.map { "\(result.faults[$0] ?? 0) \($0)" }
    var lines = [
      "",
      "soak of \(result.duration.inSeconds): \(options.clients) clients in "
        + "\(options.clientProcesses) processes, \(options.servers) servers, seed \(options.seed)",
      "requests: \(verdict.started.grouped), of which \(outcomes.joined(separator: ", "))",
      "pushes: \(verdict.pushes.grouped); handlers ran \(verdict.executions.grouped) times, again "
        + "for \(verdict.ranAgain.grouped) idempotent requests",
      "broadcasts: \(verdict.broadcasts.count.grouped) came; \(streams)",
      payments,
      "faults: \(faults.joined(separator: ", "))",
      "all clients were connected \(result.recovery.inSeconds) after the last fault",
      "",
    ]
    let rows =
      [("check", "found", "allowed", "")]
      + checks.map { ($0.subject, $0.found, $0.allowed, $0.holds ? "ok" : "FAILED") }
    let widths = (rows.map(\.0.count).max() ?? 0, rows.map(\.1.count).max() ?? 0)
    let allowed = rows.map(\.2.count).max() ?? 0
    for row in rows {
      lines.append(
        SoakSummary.pad(row.0, widths.0, isRight: false) + "  "
          + SoakSummary.pad(row.1, widths.1, isRight: true) + "  "
          + SoakSummary.pad(row.2, allowed, isRight: true) + "  " + row.3)
    }
    lines += result.problems.map { "FAILED: \($0)" }
    if result.usage.isEmpty { lines.append("Memory and descriptors were not measured: no /proc.") }
    return lines + SoakSummary.examples(verdict)
  }

  private var payments: String {
    let payments = result.verdict.payments
    return "payments: \(payments.asked.grouped) that run once, of which \(payments.made.grouped) "
      + "were made; answers came again \(payments.repeated.grouped) times, and handlers ran again "
      + "\(payments.ranAgain.grouped) times; \(payments.kept.grouped) records left; they are in "
      + SoakPayments.storeText
  }

  private var streams: String {
    let streams = result.report.streams
    return "streams: \(Int(streams.items).grouped) items, opened again after \(streams.moved) "
      + "moves, \(streams.lost) losses, \(streams.told) drains and \(streams.expired) expired "
      + "credentials"
  }

  /// Some keys of each finding, to look up in the ledgers.
  private static func examples(_ verdict: SoakVerdict) -> [String] {
    SoakFinding.allCases.compactMap { finding in
      guard let keys = verdict.keys[finding] else { return nil }
      let some = keys.prefix(5).map { String($0, radix: 16) }.joined(separator: ", ")
      return "\(finding.rawValue): keys \(some)"
    }
  }

  private static func pad(_ text: String, _ width: Int, isRight: Bool) -> String {
    let blanks = String(repeating: " ", count: max(0, width - text.count))
    return isRight ? blanks + text : text + blanks
  }
}
