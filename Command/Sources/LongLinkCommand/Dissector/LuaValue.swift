// SPDX-License-Identifier: Apache-2.0

/// A Lua constant.
indirect enum LuaValue: Equatable {
  case number(UInt64)
  case string([UInt8])
  case bool(Bool)
  /// A table of values in order.
  case list([LuaValue])
  /// A table of values by their names.
  case table([(String, LuaValue)])
  /// A table of values by numbers.
  case numbered([(UInt64, LuaValue)])

  static func string(_ text: String) -> LuaValue { .string(Array(text.utf8)) }

  static func == (left: LuaValue, right: LuaValue) -> Bool { left.source() == right.source() }

  /// A range of numbers, both included.
  static func range(_ first: UInt64, _ last: UInt64) -> LuaValue {
    .list([.number(first), .number(last)])
  }

  static func range(_ range: ClosedRange<UInt32>) -> LuaValue {
    .range(UInt64(range.lowerBound), UInt64(range.upperBound))
  }

  /// The constant in Lua's syntax, with long tables on several lines.
  func source(indent: String = "") -> String {
    switch self {
    // A number that is too large for an integer of Lua 5.4 is written as a double.
    case .number(let number): number > 1 << 62 ? "\(number).0" : "\(number)"
    case .string(let bytes): LuaValue.quoted(bytes)
    case .bool(let value): "\(value)"
    case .list(let values):
      LuaValue.braced(indent) { inner in values.map { $0.source(indent: inner) } }
    case .table(let values):
      LuaValue.braced(indent) { inner in
        values.map { "\(LuaValue.key($0)) = \($1.source(indent: inner))" }
      }
    case .numbered(let values):
      LuaValue.braced(indent) { inner in
        values.map { "[\($0)] = \($1.source(indent: inner))" }
      }
    }
  }

  private static func braced(_ indent: String, _ parts: (String) -> [String]) -> String {
    let inner = indent + "  "
    let parts = parts(inner)
    guard !parts.isEmpty else { return "{}" }
    let line = "{ " + parts.joined(separator: ", ") + " }"
    guard line.utf8.count + indent.utf8.count > 90 || line.contains("\n") else { return line }
    return "{\n" + parts.map { "\(inner)\($0),\n" }.joined() + "\(indent)}"
  }

  private static func key(_ name: String) -> String {
    let isPlain = name.utf8.allSatisfy { (97...122).contains($0) || $0 == UInt8(ascii: "_") }
    return isPlain && !["end", "in"].contains(name) ? name : "[\(quoted(Array(name.utf8)))]"
  }

  /// Everything but printable ASCII is escaped: Lua's strings are bytes, and terminals show them.
  private static func quoted(_ bytes: [UInt8]) -> String {
    var text = "\""
    for byte in bytes {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"):
        text += "\\" + String(UnicodeScalar(byte))
      case 0x20...0x7E:
        text += String(UnicodeScalar(byte))
      default:
        let digits = String(byte)
        text += "\\" + String(repeating: "0", count: 3 - digits.count) + digits
      }
    }
    return text + "\""
  }
}
