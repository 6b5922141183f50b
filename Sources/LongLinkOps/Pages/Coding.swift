// SPDX-License-Identifier: Apache-2.0

#if Operations
#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Values as JSON.
enum JSONText {
  /// The JSON of a value, with the members of objects sorted by name.
  static func of(_ value: some Encodable) -> String {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    do {
      return escaped(try encoder.encode(value))
    } catch {
      // The port's own values have texts and finite numbers.
      preconditionFailure("a page has no form in JSON: \(error)")
    }
  }

  /// The JSON with escapes for characters that a terminal would obey, or that cannot be seen, such
  /// as controls and the marks that turn the direction of a text around.
  private static func escaped(_ json: Data) -> String {
    let text = String(decoding: json, as: UTF8.self)
    // The encoder has escaped all controls before U+007F.
    guard json.contains(where: { $0 >= 0x7F }) else { return text }
    var escaped = ""
    for scalar in text.unicodeScalars {
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned:
        for unit in String(scalar).utf16 {
          let digits = String(unit, radix: 16)
          escaped += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }
}

/// A value that is null in JSON if there is none; other optional members are left out.
struct Nullable<Value: Encodable>: Encodable {
  let value: Value?

  init(_ value: Value?) {
    self.value = value
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    if let value { try container.encode(value) } else { try container.encodeNil() }
  }
}

/// Base64, as `Authorization: Basic` has it.
enum Base64Text {
  /// The bytes of a text; nil if it is not base64.
  static func decoded(_ text: String) -> [UInt8]? {
    Data(base64Encoded: text).map { Array($0) }
  }
}
#endif
