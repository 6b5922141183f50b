// SPDX-License-Identifier: Apache-2.0

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The fields of a form that was uploaded, as an object of JSON: a string for a field, and an array
/// of strings for one that was repeated. Bytes that are not UTF-8 become U+FFFD.
struct FormFields {
  private enum Value: Encodable {
    case one(String)
    case several([String])

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      switch self {
      case .one(let text): try container.encode(text)
      case .several(let texts): try container.encode(texts)
      }
    }
  }

  private var values: [String: [String]] = [:]

  /// Adds a field with its value.
  mutating func add(_ value: [UInt8], to name: String) {
    values[name, default: []].append(String(decoding: value, as: UTF8.self))
  }

  /// The document, with the fields sorted by name.
  func encoded() -> [UInt8] {
    let object = values.mapValues { $0.count == 1 ? Value.one($0[0]) : Value.several($0) }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(object) else {
      preconditionFailure("an object of strings can be encoded")
    }
    return Array(data) + [UInt8(ascii: "\n")]
  }
}
