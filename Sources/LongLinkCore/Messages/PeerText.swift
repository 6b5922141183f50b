// SPDX-License-Identifier: Apache-2.0

/// Text from a peer, made safe for log lines, errors and terminals.
///
/// It has at most 200 bytes and ends with an ellipsis if it was truncated. Control and format
/// characters (including line ends and bidirectional controls) and backslashes are escaped as in
/// Swift's string literals, and bytes that are not UTF-8 as `\xNN`. So a peer can neither forge a
/// line nor reorder one.
package struct PeerText: Equatable, Sendable, CustomStringConvertible {
  /// The most bytes of a text, including the ellipsis.
  package static let limit = 200
  private static let ellipsis = "…"

  /// The safe text.
  package let description: String

  /// Makes safe text from a decoded string.
  package init(_ text: String) {
    self.init(utf8: text.utf8)
  }

  /// Makes safe text from bytes that should be UTF-8. Reads no more of them than fit.
  package init(utf8 bytes: some Sequence<UInt8>) {
    // Each byte becomes at least one, so bytes past the limit cannot appear in the text. Nor can a
    // character that is cut in half here.
    let bytes = Array(bytes.prefix(PeerText.limit + 4))
    var text = ""
    // The end of the text if it must be truncated.
    var end = text.endIndex
    var length = 0
    PeerText.decode(bytes) { piece in
      guard length + piece.utf8.count <= PeerText.limit else {
        text.removeSubrange(end...)
        text += PeerText.ellipsis
        return false
      }
      text += piece
      length += piece.utf8.count
      if length <= PeerText.limit - PeerText.ellipsis.utf8.count { end = text.endIndex }
      return true
    }
    description = text
  }

  /// Whether bytes look like a text for people: UTF-8, without control characters other than line
  /// ends and tabs. Checks only as many bytes as a `PeerText` shows.
  package static func isPlain(utf8 bytes: [UInt8]) -> Bool {
    // The limit may cut the last character in half.
    var shown = Array(bytes.prefix(limit))
    if shown.count < bytes.count {
      while let last = shown.last, last & 0xC0 == 0x80 { shown.removeLast() }
      if let last = shown.last, last >= 0xC0 { shown.removeLast() }
    }
    guard let text = String(validating: shown, as: UTF8.self) else { return false }
    return text.unicodeScalars.allSatisfy { scalar in
      scalar.properties.generalCategory != .control || ["\n", "\r", "\t"].contains(scalar)
    }
  }

  /// Returns bytes as safe text without cutting it. It may be several times as long as the bytes.
  package static func whole(_ bytes: [UInt8]) -> String {
    var text = ""
    pieces(of: bytes) { text += $0 }
    return text
  }

  /// Passes on all bytes as safe text, in pieces of about 64 KiB. Characters for which `isKept`
  /// returns true are not escaped.
  package static func pieces<Failure>(
    of bytes: [UInt8], keeping isKept: (Unicode.Scalar) -> Bool = { _ in false },
    _ take: (String) throws(Failure) -> Void
  ) throws(Failure) {
    var text = ""
    try decode(bytes, keeping: isKept) { piece throws(Failure) in
      text += piece
      if text.utf8.count >= 65_536 {
        try take(text)
        text = ""
      }
      return true
    }
    if !text.isEmpty { try take(text) }
  }

  /// Returns text that is already safe, cut to `limit` bytes like any `PeerText`.
  package static func shortened(_ safe: String) -> String {
    guard safe.utf8.count > limit else { return safe }
    var text = ""
    for character in safe.unicodeScalars {
      let size = character.utf8.count
      guard text.utf8.count + size <= limit - ellipsis.utf8.count else { break }
      text.unicodeScalars.append(character)
    }
    return text + ellipsis
  }

  /// Passes on the safe text of each character, and of each byte that is not valid UTF-8, until
  /// `take` returns false.
  private static func decode<Failure>(
    _ bytes: [UInt8], keeping isKept: (Unicode.Scalar) -> Bool = { _ in false },
    _ take: (String) throws(Failure) -> Bool
  ) throws(Failure) {
    var rest = bytes.makeIterator()
    var parser = Unicode.UTF8.ForwardParser()
    var position = 0
    while true {
      let piece: String
      switch parser.parseScalar(from: &rest) {
      case .valid(let encoded):
        let scalar = Unicode.UTF8.decode(encoded)
        piece = isKept(scalar) ? String(scalar) : safe(scalar)
        position += encoded.count
      case .error(let count):
        piece = bytes[position..<position + count].map(escape).joined()
        position += count
      case .emptyInput:
        return
      }
      guard try take(piece) else { return }
    }
  }

  private static func safe(_ scalar: Unicode.Scalar) -> String {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned,
      .surrogate:
      // Newlines and similar characters get their short escapes, all others their numbers.
      return scalar.escaped(asASCII: true)
    default:
      return scalar == "\\" ? #"\\"# : String(scalar)
    }
  }

  private static func escape(_ byte: UInt8) -> String {
    let digits = String(byte, radix: 16, uppercase: true)
    return #"\x"# + (digits.count == 1 ? "0" : "") + digits
  }
}
