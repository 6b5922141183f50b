// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// What pages say of the sources, and how much of some things there may be.
extension TidyTests {
  // MARK: Large types

  @Test func `each large type is listed with its reason, and no other is`() throws {
    let most = 700
    let page = try Self.source("ARCHITECTURE.md")
    let section = page.lines.drop { $0 != "## Large types" }.dropFirst()
      .prefix { !$0.hasPrefix("## ") }
    #expect(section.contains { $0.contains("more than \(most) lines") }, "the limit in the page")
    // A row is: | `Type` (Module) | The reason. |
    let listed = Set(
      section.compactMap { line -> String? in
        guard let row = line.firstMatch(of: /^\| `([\w.]+)` \((\w+)\) \| \w/) else { return nil }
        return "\(row.2).\(row.1)"
      })
    let lengths = try linesOfTypes()
    for (type, length) in lengths where length > most {
      #expect(
        listed.contains(type),
        """
        \(type) has \(length) lines, more than \(most). Make a part with state and a contract of \
        its own a type of its own, or give the reason in ARCHITECTURE.md, "Large types".
        """)
    }
    for type in listed {
      let length = lengths[type, default: 0]
      #expect(
        length > most,
        "\(type) has only \(length) lines: remove it from ARCHITECTURE.md, \"Large types\".")
    }
  }

  /// The lines of each type, in its declaration and in its extensions, by module and name.
  private func linesOfTypes() throws -> [String: Int] {
    let kinds: Set<Substring> = ["class", "struct", "enum", "actor", "extension"]
    var lengths: [String: Int] = [:]
    // Generated types are as long as their .proto files.
    for source in try Self.sources("Sources") where !source.path.hasSuffix(".longlink.swift") {
      var open: (type: String, line: Int)?
      for (number, line) in source.lines.enumerated() {
        if line.first?.isLetter == true || line.first == "@" {
          let words = line.split { !($0.isLetter || $0.isNumber || "._@".contains($0)) }
          guard let kind = words.firstIndex(where: { kinds.contains($0) }),
            kind + 1 < words.endIndex, line.hasSuffix("{") || !line.hasSuffix("}")
          else { continue }
          open = ("\(source.target).\(words[kind + 1])", number)
        } else if line == "}", let (type, first) = open {
          lengths[type, default: 0] += number - first + 1
          open = nil
        }
      }
    }
    return lengths
  }

  // MARK: Exclusivity

  @Test func `the page about throughput counts the unchecked properties`() throws {
    let word = "@exclusivity(unchecked)"
    let page = try Self.source("Sources/LongLinkDriver/Throughput/Throughput.md")
    let named = page.lines.compactMap { line in
      line.firstMatch(of: /`@exclusivity\(unchecked\)` at (\d+) properties/).map { Int($0.1) }
    }
    let count = try Self.sources("Sources").flatMap(\.code).count { $0.text.contains(word) }
    #expect(
      named == [count],
      "\(word) stands at \(count) properties of the sources: write that number in Throughput.md.")
  }

  // MARK: Inlining

  /// The most attributes about inlining in each module; a module that is not listed has none.
  private static let inlining: [(word: String, ceilings: [String: Int])] = [
    (
      "@inline(__always)",
      [
        "LongLinkCore": 132, "LongLinkDialects": 3, "LongLinkDriver": 67, "LongLinkProtobufC": 3,
        "LongLinkTransport": 15,
      ]
    ),
    (
      "@inlinable",
      [
        "LongLinkCore": 153, "LongLinkDriver": 9, "LongLinkProtobufC": 25, "LongLinkTransport": 7,
      ]
    ),
  ]

  @Test func `inlining is asked for only where it was measured`() throws {
    for (word, ceilings) in Self.inlining {
      var counts: [String: Int] = [:]
      for source in try Self.sources("Sources") where source.mentions([word]) {
        counts[source.target, default: 0] += source.code.count { $0.text.contains(word) }
      }
      for (module, count) in counts {
        let ceiling = ceilings[module, default: 0]
        #expect(
          count <= ceiling,
          """
          \(module) has \(count) \(word), more than its ceiling of \(ceiling). Each one makes code \
          larger or fixes it for callers: add one only where `make bench` or `make bench-check` \
          shows what it saves, say so in the commit, and raise the ceiling here by as much.
          """)
      }
    }
  }

  // MARK: Licences

  @Test func `each protocol file and each script of the dissector names its licence`() throws {
    let folders = [
      "Sources", "Tests", "Tests/Generator", "Command/Sources", "Command/Tests", "Protocols",
      "Examples/Chat", "Examples/Payments", "Benchmarks",
    ]
    for (suffix, comment) in [("proto", "//"), ("lua", "--")] {
      // `Scripts/words.sh` writes protocols there, which are no part of the project.
      let files = try folders.flatMap { try Self.sources($0, [suffix]) }
        .filter { !$0.path.contains("Generator/Words/Protos/") }
      #expect(!files.isEmpty, "no .\(suffix) file was found")
      for file in files {
        #expect(
          file.lines.first == "\(comment) SPDX-License-Identifier: Apache-2.0",
          "\(file.path): the licence is the first line of a file that is written by hand")
      }
    }
  }
}
