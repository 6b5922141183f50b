// SPDX-License-Identifier: Apache-2.0

import LongLinkCommandSupport
import LongLinkScenarios

extension [FaultKind: Int] {
  private var words: [String] {
    FaultKind.allCases.compactMap { kind in self[kind].map { "\(kind) \($0.grouped)" } }
  }

  /// On one line.
  var text: String { words.joined(separator: "  ") }

  /// On lines of at most 80 columns.
  var lines: [String] {
    words.reduce(into: ["faults:"]) { lines, word in
      let last = lines.count - 1
      if lines[last].count + 2 + word.count <= 80 {
        lines[last] += "  \(word)"
      } else {
        lines.append("         \(word)")
      }
    }
  }
}
