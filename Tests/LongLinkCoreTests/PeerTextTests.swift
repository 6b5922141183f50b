// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

@Suite struct PeerTextTests {
  @Test(arguments: [
    ("", ""),
    ("maintenance at 10:00", "maintenance at 10:00"),
    ("服务器 – déjà 👍", "服务器 – déjà 👍"),
    ("bye\n2026-01-01 critical: forged", #"bye\n2026-01-01 critical: forged"#),
    ("a\r\tb\0", #"a\r\tb\0"#),
    ("\u{1B}[31mred\u{7F}", #"\u{1B}[31mred\u{7F}"#),
    ("line\u{85}next\u{2028}and\u{2029}", #"line\u{0085}next\u{2028}and\u{2029}"#),
    ("user\u{202E}nimda\u{2066}x", #"user\u{202E}nimda\u{2066}x"#),
    (#"C:\n"#, #"C:\\n"#),
  ])
  func `characters that could change a line are escaped`(text: String, safe: String) {
    #expect(PeerText(text).description == safe)
  }

  @Test func `bytes that are not UTF-8 are shown as numbers`() {
    #expect(PeerText(utf8: [0x61, 0xFF, 0x62, 0xC3]).description == #"a\xFFb\xC3"#)
    #expect(PeerText(utf8: [0xE2, 0x82, 0x41, 0x0A]).description == #"\xE2\x82A\n"#)
    // A surrogate and an overlong line end are none either.
    #expect(PeerText(utf8: [0xED, 0xA0, 0x80]).description == #"\xED\xA0\x80"#)
    #expect(PeerText(utf8: [0xC0, 0x8A]).description == #"\xC0\x8A"#)
  }

  @Test func `a whole text is escaped and not cut`() {
    let part: [UInt8] = [0x61, 0x0A, 0xFF, 0xC3, 0xA9, 0x5C]
    let whole = PeerText.whole(Array(repeatElement(part, count: 100).joined()))
    #expect(whole == String(repeating: #"a\n\xFFé\\"#, count: 100))
    #expect(PeerText.whole([]).isEmpty)
  }

  @Test func `long texts come in pieces, which no character is in two of`() {
    let bytes = Array(String(repeating: "é\u{85}€", count: 50_000).utf8)
    var pieces: [String] = []
    PeerText.pieces(of: bytes) { pieces.append($0) }
    #expect(pieces.count > 5 && pieces.allSatisfy { $0.utf8.count < 65_560 })
    #expect(pieces.joined() == PeerText.whole(bytes))
    #expect(pieces.joined() == String(repeating: #"é\u{0085}€"#, count: 50_000))
  }

  @Test func `a text of the limit is whole, and one more byte is cut`() {
    let whole = String(repeating: "x", count: PeerText.limit)
    #expect(PeerText(whole).description == whole)
    #expect(PeerText(whole + "x").description == whole.dropLast(3) + "…")
  }

  @Test(arguments: ["x", "é", "€", "👍", "\n", "\u{202E}", "\\"])
  func `no text is longer than the limit, nor cut within a character`(character: String) {
    let one = PeerText(character).description
    for count in 0...400 {
      let text = PeerText(String(repeating: character, count: count)).description
      #expect(text.utf8.count <= PeerText.limit)
      let kept = text.hasSuffix("…") ? text.dropLast() : text[...]
      #expect(kept == String(repeating: one, count: kept.utf8.count / one.utf8.count))
      #expect(text.hasSuffix("…") == (count * one.utf8.count > PeerText.limit))
    }
  }

  @Test func `no more bytes are examined than can be shown`() {
    var looked = 0
    let endless = sequence(state: ()) { _ in
      looked += 1
      return UInt8(ascii: "y")
    }
    #expect(PeerText(utf8: endless).description.utf8.count == PeerText.limit)
    #expect(looked <= PeerText.limit + 8)
  }
}
