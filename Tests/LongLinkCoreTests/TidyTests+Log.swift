// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// What the page about log lines says.
extension TidyTests {
  private struct Line: Hashable {
    /// Empty where the code chooses among several.
    let level: String
    let message: String
  }

  /// The lines that the library logs.
  private func loggedLines() throws -> Set<Line> {
    let others = ["LongLinkTesting", "LongLinkScenarios", "protoc-gen-longlink"]
    // `log(.info, "Text"`, `logger.info("Text"`, or with a text of several lines.
    let call =
      #/
      [lL]og (?:ger)? (?:\.log)? [.(] \s* \.?
      (trace|debug|info|notice|warning|error|critical) [,(] \s*
      (?: """\n ([\s\S]*?) \n\s*""" | "([^"\n]+)" )
      /#
    let choice = /[lL]og\(\s*[^;"]*\? "([A-Z][^"]+)" : "([A-Z][^"]+)"/
    var lines: Set<Line> = []
    for source in try Self.sources("Sources") where !others.contains(source.target) {
      let text = source.lines.joined(separator: "\n")
      for match in text.matches(of: call) {
        let message = (match.2 ?? match.3 ?? "").replacing(#/\s*\\?\n\s*/#, with: " ")
          .trimmingCharacters(in: .whitespaces).replacing("`", with: "")
        lines.insert(Line(level: String(match.1), message: message))
      }
      for match in text.matches(of: choice) {
        for message in [match.1, match.2] { lines.insert(Line(level: "", message: "\(message)")) }
      }
    }
    return lines
  }

  @Test func `each line of the log is explained, with its level`() throws {
    let page = try Self.source("Sources/LongLinkServer/LongLinkServer.docc/LogLines.md")
    let rows = page.lines.compactMap { $0.wholeMatch(of: /\| `([^`]+)` \| (\w+).* \| .+ \| .+ \|/) }
    let levels = Dictionary(grouping: rows, by: { String($0.1) }).mapValues { $0.map(\.2) }
    let logged = try loggedLines()
    #expect(logged.count > 50)
    for line in logged {
      let told = try #require(levels[line.message], "LogLines.md lacks \"\(line.message)\"")
      // The security's `info` is the server's `notice`.
      let isRight = line.level.isEmpty || told.contains { $0 == line.level || $0 == "notice" }
      #expect(isRight, "the level of \"\(line.message)\" is \(line.level)")
    }
    let gone = Set(levels.keys).subtracting(logged.map(\.message))
    #expect(gone.isEmpty, "no code logs \(gone)")
  }
}
