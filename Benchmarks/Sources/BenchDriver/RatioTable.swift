// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The ratios alone, in Markdown: a row for each subject, a column for each work.
package struct RatioTable {
  private let summaries: [Summary]

  package init(_ summaries: [Summary]) { self.summaries = summaries }

  package var text: String {
    Placement.allCases.compactMap { placement in
      let here = summaries.filter { $0.placement == placement }
      return here.isEmpty ? nil : table(here, placement)
    }.joined(separator: "\n")
  }

  private func table(_ summaries: [Summary], _ placement: Placement) -> String {
    let works = Work.all.filter { work in summaries.contains { $0.work == work } }
    var names: [String] = []
    for summary in summaries where !names.contains(summary.subject) {
      names.append(summary.subject)
    }
    let heads = works.map { "\($0.name), \($0.figure)" }
    var lines = [
      "| \(placement == .free ? "free" : "one") | \(heads.joined(separator: " | ")) |",
      "| --- |" + String(repeating: " ---: |", count: works.count),
    ]
    for name in names {
      let cells = works.map { work in
        let summary = summaries.first { $0.subject == name && $0.work == work }
        return summary.map { RatioTable.cell($0.ratio) } ?? ""
      }
      lines.append("| \(name) | \(cells.joined(separator: " | ")) |")
    }
    return lines.joined(separator: "\n") + "\n"
  }

  private static func cell(_ spread: Summary.Spread) -> String {
    String(format: spread.median < 0.1 ? "%.3f" : "%.2f", spread.median)
  }
}
