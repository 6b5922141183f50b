// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// What ARCHITECTURE.md names has to exist.
extension TidyTests {
  /// The names in the code of one file, without its comments.
  private struct Names {
    let path: String
    var all: Set<String> = []
    /// The types that the file declares or extends.
    var types: Set<String> = []
    /// The words of lines that declare something.
    var declared: Set<String> = []

    private static let ofTypes: Set<String> = [
      "actor", "class", "enum", "extension", "protocol", "struct",
    ]
    private static let ofMembers: Set<String> = ["case", "func", "init", "let", "var"]

    init(_ source: Source) {
      path = source.path
      for line in source.code {
        let words = Self.words(line.text)
        all.formUnion(words)
        for (word, next) in zip(words, words.dropFirst()) where Self.ofTypes.contains(word) {
          types.insert(next)
        }
        if words.contains(where: { Self.ofTypes.contains($0) || Self.ofMembers.contains($0) }) {
          declared.formUnion(words)
        }
      }
    }

    static func words(_ text: Substring) -> [String] {
      text.utf8.split { byte in
        switch byte {
        case 48...57, 65...90, 95, 97...122: false
        default: true
        }
      }.map { String(Substring($0)) }
    }
  }

  /// The texts between backquotes in ARCHITECTURE.md, but for the blocks.
  private func quoted() throws -> Set<Substring> {
    var quoted: Set<Substring> = []
    var isInBlock = false
    for line in try Self.source("ARCHITECTURE.md").lines {
      if line.hasPrefix("```") { isInBlock.toggle() }
      guard !isInBlock else { continue }
      for (index, text) in line.split(separator: "`", omittingEmptySubsequences: false).enumerated()
      where index % 2 == 1 {
        quoted.insert(text)
      }
    }
    return quoted
  }

  @Test func `all names between backquotes in the map exist`() throws {
    var sources = try ["Sources", "Tests", "Command/Sources"].flatMap {
      try Self.sources($0, ["swift", "c", "h"])
    }
    sources += try Self.sources("Protocols", ["proto"])
    sources += try [Self.source("Makefile"), Self.source("Package.swift")]
    let files = sources.map(Names.init)
    var known = files.reduce(into: Set<String>()) { $0.formUnion($1.all) }
    // The names of files and folders, too.
    let others = try ["Protocols", "Scripts", "Sources", "Benchmarks"].flatMap {
      try Self.sources($0, ["md", "py", "sh", "swift"])
    }
    for source in sources + others { known.formUnion(Names.words(source.path[...])) }
    for text in try quoted() {
      let unknown = Names.words(text).filter { !known.contains($0) }
      #expect(unknown.isEmpty, "ARCHITECTURE.md: `\(text)` does not exist")
      // A member is declared in a file of its type: `Type.member`, `Type.Inner.member`.
      let path = text.prefix { $0 != "(" }.split(separator: ".").map(String.init)
      guard path.count > 1, let type = path.first, type.first?.isUppercase == true,
        let member = path.last, path.allSatisfy({ Names.words($0[...]) == [$0] })
      else { continue }
      let isDeclared = files.contains { $0.types.contains(type) && $0.declared.contains(member) }
      #expect(isDeclared, "ARCHITECTURE.md: `\(text)` is not declared")
    }
  }

  /// `Driver/Link/Link` stands for `Sources/LongLinkDriver/Link/Link.swift`.
  @Test func `all paths in the map exist`() throws {
    let paths = Set(try Self.sources("Sources").map(\.path))
    var count = 0
    for line in try Self.source("ARCHITECTURE.md").lines {
      for word in line.split(whereSeparator: { " ,;:()`|".contains($0) }) {
        let path = word.hasSuffix(".") ? word.dropLast() : word
        guard path.first?.isUppercase == true, path.split(separator: "/").count == 3,
          !path.hasSuffix(".md")
        else { continue }
        count += 1
        let exists = ["Sources/", "Sources/LongLink"].contains {
          paths.contains("\($0)\(path).swift")
        }
        #expect(exists, "ARCHITECTURE.md: \(path) does not exist")
      }
    }
    #expect(count > 100)
  }
}
