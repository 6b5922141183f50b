// SPDX-License-Identifier: Apache-2.0

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The fields of an uploaded form, as a JSON object: a field is a string, and a repeated field an
/// array of strings. Bytes that are not UTF-8 become U+FFFD.
struct FormFields {
  /// The values by the name's bytes: names that Swift compares as equal can be different fields.
  private var values: [[UInt8]: [String]] = [:]

  /// Adds a field with its value.
  mutating func add(_ value: [UInt8], to name: String) {
    values[Array(name.utf8), default: []].append(String(decoding: value, as: UTF8.self))
  }

  /// The JSON document, with the fields sorted by name.
  func encoded() -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    func json(_ value: some Encodable) -> [UInt8] {
      guard let data = try? encoder.encode(value) else {
        preconditionFailure("strings can be encoded")
      }
      return Array(data)
    }
    let members = values.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map { name, values in
      json(String(decoding: name, as: UTF8.self)) + [UInt8(ascii: ":")]
        + (values.count == 1 ? json(values[0]) : json(values))
    }
    return Array("{".utf8) + members.joined(separator: ",".utf8) + Array("}\n".utf8)
  }
}
