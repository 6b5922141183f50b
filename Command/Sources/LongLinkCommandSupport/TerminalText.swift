// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCore

/// What a peer sent, as a terminal may show it.
package enum TerminalText {
  /// Whether a character controls a terminal, ends a line or reorders one.
  private static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: true
    default: scalar.properties.isBidiControl
    }
  }

  /// The bytes of a document's element on one line, with escapes for what would not stay on it, or
  /// would control a terminal. Line breaks and tabs become spaces.
  ///
  /// In JSON the escapes are those of JSON, so that the line is JSON if the element is.
  package static func line(_ bytes: [UInt8], isJSON: Bool) -> [UInt8] {
    if bytes.allSatisfy({ 0x20..<0x7F ~= $0 }) { return bytes }
    var line = ""
    var last: Unicode.Scalar?
    for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars {
      switch scalar {
      // The second half of one line break.
      case "\n" where last == "\r": break
      case "\r", "\n", "\t": line += " "
      case _ where !isUnsafe(scalar): line.unicodeScalars.append(scalar)
      case _ where isJSON:
        let digits = String(scalar.value, radix: 16)
        line += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: line += scalar.escaped(asASCII: true)
      }
      last = scalar
    }
    return Array(line.utf8)
  }

  /// Passes on all of the bytes with escapes for what would control a terminal, in pieces. Newlines
  /// and tabs stay.
  fileprivate static func pieces(
    of bytes: [UInt8], _ take: (String) throws -> Void
  ) throws {
    try PeerText.pieces(of: bytes, keeping: { $0 == "\n" || $0 == "\t" || !isUnsafe($0) }, take)
  }
}

/// Prints a body as it comes: its bytes, or on a terminal a text that cannot control it.
package struct BodyPrinter {
  private let isTerminal = isatty(STDOUT_FILENO) == 1
  /// The beginning of a character.
  private var rest: [UInt8] = []

  /// Makes a printer for one body.
  package init() {}

  /// Prints the next bytes at once, but for a character that is not whole yet.
  package mutating func write(_ bytes: [UInt8]) throws {
    guard isTerminal else { return try Output.write(bytes) }
    let all = rest + bytes
    rest = BodyPrinter.beginning(atEndOf: all)
    try TerminalText.pieces(of: all.dropLast(rest.count)) { try Output.write(Array($0.utf8)) }
  }

  /// Prints what is left.
  package mutating func finish() throws {
    try TerminalText.pieces(of: rest) { try Output.write(Array($0.utf8)) }
    rest = []
  }

  /// The bytes at the end that begin a character, at most three.
  private static func beginning(atEndOf bytes: [UInt8]) -> [UInt8] {
    for count in 1...3 where count <= bytes.count {
      let byte = bytes[bytes.count - count]
      let length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC2 ? 2 : 1
      if byte & 0xC0 != 0x80 { return length > count ? Array(bytes.suffix(count)) : [] }
    }
    return []
  }
}
