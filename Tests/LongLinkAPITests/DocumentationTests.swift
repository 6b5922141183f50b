import Foundation
import Testing

/// What the documentation shows is what is compiled.
@Suite struct DocumentationTests {
  private static let tests = URL(filePath: #filePath).deletingLastPathComponent()
  private static let pages = tests.deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Sources/LongLinkAPI/LongLinkAPI.docc")

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
    #expect(pieces == 16)
  }
}
