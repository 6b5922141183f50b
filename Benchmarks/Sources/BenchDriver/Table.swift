// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Summaries as text: a table for each work and placement.
package struct Table {
  private let summaries: [Summary]

  package init(_ summaries: [Summary]) { self.summaries = summaries }

  private static let columns = [
    "subject", "p50 ÷ floor", "p99 ÷ floor", "req/s ÷ floor", "p50 µs", "p99 µs", "p99.9 µs",
    "req/s",
    "CPU µs/req", "alloc/req", "calls/req", "MiB",
  ]

  package var text: String {
    var parts: [String] = []
    for placement in Placement.allCases {
      for work in Work.all {
        let rows = summaries.filter { $0.work == work && $0.placement == placement }
        guard !rows.isEmpty else { continue }
        let place = placement == .free ? "each on its own CPU" : "both on CPU 0"
        parts.append(
          "\(work.name), \(work.load), \(place)\n"
            + Table.lines([Table.columns] + rows.map(Table.cells)))
      }
    }
    return parts.joined(separator: "\n")
  }

  private static func cells(_ summary: Summary) -> [String] {
    func micro(_ spread: Summary.Spread) -> String {
      spread.median > 0 ? number(spread.median / 1_000) : "–"
    }
    func pair(_ client: Double?, _ server: Double?) -> String {
      guard let client, let server else { return "–" }
      return "\(number(client)) · \(number(server))"
    }
    func mebibytes(_ bytes: UInt64?) -> Double? { bytes.map { Double($0) / 1_048_576 } }
    return [
      summary.subject, ratio(summary.timeRatio), ratio(summary.tailRatio), ratio(summary.rateRatio),
      micro(summary.p50),
      micro(summary.p99), micro(summary.p999), number(summary.rate.median),
      summary.cpu.map { number($0.median) } ?? "–",
      pair(summary.clientAllocations, summary.serverAllocations),
      pair(summary.clientCalls, summary.serverCalls),
      pair(mebibytes(summary.clientMemory), mebibytes(summary.serverMemory)),
    ]
  }

  private static func ratio(_ spread: Summary.Spread) -> String {
    func digits(_ value: Double) -> String {
      value.isFinite ? String(format: value < 0.1 ? "%.3f" : "%.2f", value) : "–"
    }
    return "\(digits(spread.median)) (\(digits(spread.least))–\(digits(spread.most)))"
  }

  private static func number(_ value: Double) -> String {
    switch value {
    case 10_000...: "\(Int(value / 1_000))k"
    case 100...: String(format: "%.0f", value)
    case 10...: String(format: "%.1f", value)
    case 0.1...: String(format: "%.2f", value)
    default: String(format: "%.3f", value)
    }
  }

  private static func lines(_ rows: [[String]]) -> String {
    let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max()! }
    var text = ""
    for (index, row) in rows.enumerated() {
      let cells = row.enumerated().map { column, cell in
        let padding = String(repeating: " ", count: widths[column] - cell.count)
        return column == 0 ? cell + padding : padding + cell
      }
      text += cells.joined(separator: "  ") + "\n"
      if index == 0 {
        text += widths.map { String(repeating: "─", count: $0) }.joined(separator: "  ") + "\n"
      }
    }
    return text
  }
}
