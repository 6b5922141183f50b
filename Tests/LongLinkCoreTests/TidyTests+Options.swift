// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// What a test has to name.
extension TidyTests {
  @Test func `a test names each option of each configuration`() throws {
    let code = try ["Tests", "Command/Tests"].flatMap { try Self.sources($0) }
      .filter { !$0.path.hasSuffix("/TidyTests+Options.swift") }
      .reduce(into: Data()) { $0 += $1.data }
    let options = try Self.sources("Sources").flatMap(options)
    #expect(options.count > 100, "the options are found")
    for (type, option) in options {
      let ways = [
        ".\(option) = ", "$0.\(option).", "configuration.\(option).", " \(option): ",
        "(\(option): ",
      ]
      let isNamed = ways.contains { code.range(of: Data($0.utf8)) != nil }
      #expect(isNamed, "no test names \(type).\(option), so that it could have no effect")
    }
  }

  /// The options in the declarations of configurations, those of groups as `limits.maxBody`.
  private func options(of source: Source) -> [(type: String, option: String)] {
    guard source.mentions(["Configuration: Sendable {", "Configuration {"]) else { return [] }
    var found: [(String, String)] = []
    var type: (name: String, indent: Substring, isExtension: Bool)?
    var group: String?
    for line in source.lines {
      if let start = line.firstMatch(
        of: /^( *)(public struct|extension) (\w*Configuration)(: Sendable)? \{/)
      {
        type = (String(start.3), start.1, start.2 == "extension")
      } else if let current = type {
        if line == current.indent + "}" { type = nil }
        if line == current.indent + "  }" { group = nil }
        if let start = line.firstMatch(of: /^  public struct (\w+): Sendable \{/) {
          group = start.1.lowercased()
        }
        guard let option = line.firstMatch(of: /^( *)public var (\w+)/) else { continue }
        if let group, current.isExtension {
          found.append((current.name, "\(group).\(option.2)"))
        } else if !current.isExtension, option.1 == current.indent + "  " {
          found.append((current.name, String(option.2)))
        }
      }
    }
    return found
  }
}
