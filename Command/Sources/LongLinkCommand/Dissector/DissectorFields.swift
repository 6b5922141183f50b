// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

/// The fields that a dissector shows, each with a unique name for filters.
struct DissectorFields {
  private struct Entry {
    var title: String
    var width: Int
    var isBytes: Bool
    var base: String
    var values: [(UInt64, String)] = []
    var mask: UInt64 = 0
  }

  private var names: [String] = []
  private var entries: [String: Entry] = [:]

  /// Names that the program uses for fields that it computes.
  private static let taken: Set<String> = [
    "kind", "body", "delimiter", "skipped", "computed_checksum", "checksum_status", "response_in",
    "request_in", "cancelled_in", "time", "port", "metadata", "type", "item", "items_up",
    "items_down",
  ]

  /// Adds a field, and returns its name. Equal fields of both directions share one.
  mutating func add(
    _ wanted: String, title: String? = nil, width: Int, isBytes: Bool = false,
    base: String = "dec", values: [(UInt64, String)] = [], mask: UInt64 = 0
  ) -> String {
    var name = Self.taken.contains(wanted) ? "\(wanted)_field" : wanted
    while let known = entries[name] {
      guard known.isBytes == isBytes, known.base == base, known.mask == mask else {
        name += "_other"
        continue
      }
      entries[name]?.width = max(known.width, width)
      return name
    }
    names.append(name)
    entries[name] = Entry(
      title: title ?? wanted, width: width, isBytes: isBytes, base: base, values: values,
      mask: mask)
    return name
  }

  var table: LuaValue {
    .list(
      names.map { name in
        let entry = entries[name]!
        var parts: [(String, LuaValue)] = [
          ("filter", .string(name)), ("title", .string(entry.title)),
        ]
        guard !entry.isBytes else { return .table(parts + [("bytes", .bool(true))]) }
        parts += [("width", .number(UInt64(entry.width))), ("base", .string(entry.base))]
        if entry.mask != 0 { parts.append(("mask", .number(entry.mask))) }
        if !entry.values.isEmpty {
          parts.append(("values", .numbered(entry.values.map { ($0, .string($1)) })))
        }
        return .table(parts)
      })
  }
}
