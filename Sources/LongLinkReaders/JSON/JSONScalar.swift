// SPDX-License-Identifier: Apache-2.0

/// Numbers and words of JSON.
enum JSONScalar {
  /// Whether a number or word ends before this byte.
  static func isEnd(_ byte: UInt8) -> Bool {
    switch byte {
    case 0...UInt8(ascii: " "), UInt8(ascii: ","), UInt8(ascii: ":"), UInt8(ascii: "]"),
      UInt8(ascii: "}"), UInt8(ascii: "["), UInt8(ascii: "{"), UInt8(ascii: "\""):
      true
    default:
      false
    }
  }

  /// Whether bytes that end as `isEnd` says can be a complete number or word.
  static func isComplete(_ bytes: ArraySlice<UInt8>) -> Bool {
    guard let first = bytes.first, let last = bytes.last else { return false }
    switch first {
    case UInt8(ascii: "t"): return bytes.elementsEqual("true".utf8)
    case UInt8(ascii: "f"): return bytes.elementsEqual("false".utf8)
    case UInt8(ascii: "n"): return bytes.elementsEqual("null".utf8)
    default: return (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(last)
    }
  }
}

/// Names of members in JSON.
enum JSONName {
  /// Whether a name with its quotes equals `wanted`, after its escapes are replaced.
  static func matches(_ name: [UInt8], _ wanted: [UInt8]) -> Bool {
    // An escape has at most six bytes, and stands for at least one.
    guard name.count - 2 <= 6 * wanted.count else { return false }
    return text(name[...]) == wanted
  }

  /// The string at the beginning of `bytes`, with its quotes; nil if they do not begin with one.
  static func quoted(at bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
    guard bytes.first == UInt8(ascii: "\"") else { return nil }
    var isEscaped = false
    for place in bytes.indices.dropFirst() {
      if isEscaped {
        isEscaped = false
      } else if bytes[place] == UInt8(ascii: "\"") {
        return bytes[...place]
      } else {
        isEscaped = bytes[place] == UInt8(ascii: "\\")
      }
    }
    return nil
  }

  /// The text of a name with its quotes, with escapes replaced; nil if an escape is invalid.
  static func text(_ name: ArraySlice<UInt8>) -> [UInt8]? {
    let name = name.dropFirst().dropLast()
    return name.contains(UInt8(ascii: "\\")) ? unescaped(name) : Array(name)
  }

  private static func unescaped(_ name: ArraySlice<UInt8>) -> [UInt8]? {
    var text: [UInt8] = []
    var units: [UInt16] = []
    var rest = name
    func flush() {
      text += String(decoding: units, as: UTF16.self).utf8
      units = []
    }
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "\\") else {
        flush()
        text.append(byte)
        continue
      }
      guard let kind = rest.popFirst() else { return nil }
      if kind == UInt8(ascii: "u") {
        let digits = String(decoding: rest.prefix(4), as: UTF8.self)
        guard digits.utf8.count == 4, let unit = UInt16(digits, radix: 16) else { return nil }
        rest = rest.dropFirst(4)
        units.append(unit)
      } else {
        guard let unit = unit(ofEscape: kind) else { return nil }
        units.append(unit)
      }
    }
    flush()
    return text
  }

  private static func unit(ofEscape kind: UInt8) -> UInt16? {
    switch kind {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): UInt16(kind)
    case UInt8(ascii: "b"): 8
    case UInt8(ascii: "f"): 12
    case UInt8(ascii: "n"): 10
    case UInt8(ascii: "r"): 13
    case UInt8(ascii: "t"): 9
    default: nil
    }
  }
}
