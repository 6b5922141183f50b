// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCalls
import LongLinkDriver
import Testing

/// What the documentation shows is what is compiled.
@Suite struct DocumentationTests {
  private static let tests = URL(filePath: #filePath).deletingLastPathComponent()
  private static let pages = tests.deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Sources/LongLinkCalls/LongLinkCalls.docc")

  private static func lines(of file: URL) throws -> [String] {
    try String(contentsOf: file, encoding: .utf8).split(
      separator: "\n", omittingEmptySubsequences: false
    ).map { $0.trimmingCharacters(in: .whitespaces) }
  }

  @Test func `each piece of code in the documentation is compiled`() throws {
    let code = try Self.lines(of: Self.tests.appending(path: "DocumentedCode.swift"))
    let pages = try FileManager.default.contentsOfDirectory(
      at: Self.pages, includingPropertiesForKeys: nil
    ).filter { $0.pathExtension == "md" }.sorted { $0.path < $1.path }
    #expect(pages.count == 8)
    var pieces = 0
    for page in pages {
      let lines = try Self.lines(of: page)
      var rest = lines[...]
      while let start = rest.firstIndex(of: "```swift") {
        let end = try #require(rest[start...].firstIndex(of: "```"))
        let piece = Array(lines[(start + 1)..<end])
        let isCompiled = code.indices.contains { code[$0...].starts(with: piece) }
        #expect(isCompiled, "\(page.lastPathComponent), line \(start + 1)")
        pieces += 1
        rest = lines[(end + 1)...]
      }
    }
    #expect(pieces == 20)
  }

  @Test func `each code of an error is listed, numbered and documented`() throws {
    let root = Self.tests.deletingLastPathComponent().deletingLastPathComponent()
    let source = try Self.lines(
      of: root.appending(path: "Sources/LongLinkDriver/Public/LongLinkError.swift"))
    let names = source.compactMap { $0.firstMatch(of: /^public static let (\w+) = Code\(/)?.1 }
      .map(String.init)
    #expect(names.count >= 15)
    #expect(LongLinkError.Code.allCases.map(\.description) == names)
    let failures = try Self.lines(
      of: root.appending(path: "Sources/LongLink/LongLink.docc/Failures.md"))
    let page = try Self.lines(of: Self.pages.appending(path: "Errors.md"))
    for code in LongLinkError.Code.allCases {
      #expect(failures.contains { $0.hasPrefix("| `\(code)` |") }, "\(code)")
      guard code != .rejected else { continue }
      let number = CallErrorCode(LongLinkError(code, doing: "test"))
      #expect(number != .other, "\(code)")
      #expect(page.contains { $0.hasPrefix("| \(number) | `\(code)` |") }, "\(code)")
    }
  }
}
