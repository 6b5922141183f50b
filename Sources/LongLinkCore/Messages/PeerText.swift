// SPDX-License-Identifier: Apache-2.0

/// Text that a peer said, made safe for a log line, an error and a terminal.
///
/// It has at most 200 bytes and ends with an ellipsis where it was cut. Control and format
/// characters (line ends and bidirectional controls among them) and backslashes are escaped as in
/// Swift's string literals, bytes that are not UTF-8 as `\xNN`. So a peer can neither forge a line
/// nor reorder one.
package struct PeerText: Equatable, Sendable, CustomStringConvertible {
  /// The most bytes of a text, the ellipsis included.
  package static let limit = 200
  private static let ellipsis = "…"

  /// The safe text.
  package let description: String

  /// Takes a text that was decoded already.
  package init(_ text: String) {
    self.init(utf8: text.utf8)
  }

  /// Takes bytes that should be UTF-8. It looks at no more of them than may be told.
  package init(utf8 bytes: some Sequence<UInt8>) {
    // Each byte becomes at least one: behind the limit nothing is told. A character that is cut in
    // half here stands behind it too.
    let bytes = Array(bytes.prefix(PeerText.limit + 4))
    var text = ""
    // Where the text has to end if it has to be cut.
    var end = text.endIndex
    var length = 0
    var rest = bytes.makeIterator()
    var parser = Unicode.UTF8.ForwardParser()
    var position = 0
    decoding: while true {
      let piece: String
      switch parser.parseScalar(from: &rest) {
      case .valid(let encoded):
        piece = PeerText.safe(Unicode.UTF8.decode(encoded))
        position += encoded.count
      case .error(let count):
        piece = bytes[position..<position + count].map(PeerText.escape).joined()
        position += count
      case .emptyInput:
        break decoding
      }
      guard length + piece.utf8.count <= PeerText.limit else {
        text.removeSubrange(end...)
        text += PeerText.ellipsis
        break
      }
      text += piece
      length += piece.utf8.count
      if length <= PeerText.limit - PeerText.ellipsis.utf8.count { end = text.endIndex }
    }
    description = text
  }

  private static func safe(_ scalar: Unicode.Scalar) -> String {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned,
      .surrogate:
      // Newlines and the like are told in the short form, all others by their numbers.
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
