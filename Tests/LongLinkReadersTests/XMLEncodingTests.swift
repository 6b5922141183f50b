// SPDX-License-Identifier: Apache-2.0

import CLongLinkReaders
import LongLinkReaders
import Testing

/// Encodings of single bytes, and declarations of document types.
@Suite struct XMLEncodingTests {
  /// Text in encodings, as their standards have it.
  static let samples: [(names: [String], bytes: [UInt8], text: String)] = [
    (["utf8", "UTF8", "Utf_8"], Array("é日𝄞".utf8), "é日𝄞"),
    (["latin1", "iso8859-1", "ISO_8859-1", "L1"], [0xE9, 0xA4], "é¤"),
    (["ascii", "us-ascii", "ANSI_X3.4-1968"], [0x61], "a"),
    (["windows-1252", "cp1252"], [0x80, 0x93, 0xE9], "€“é"),
    (["windows-1251", "CP1251"], [0xCF, 0xF0, 0xE8], "При"),
    (["ISO-8859-15", "latin9"], [0xA4, 0xBD], "€œ"), (["iso8859-2", "latin2"], [0xB1], "ą"),
    (["iso-8859-5"], [0xBF], "П"), (["ISO-8859-16"], [0xDE], "Ț"),
    (["KOI8-R", "koi8-r"], [0xF0, 0xD2], "Пр"), (["KOI8-U"], [0xB4], "Є"),
    (["IBM866"], [0x8F, 0xE0], "Пр"), (["macintosh", "x-mac-roman"], [0x8E], "é"),
    // Converters of these hold a letter back until they know what follows.
    (["windows-1258"], [0x61, 0xEC, 0xFE], "a\u{301}₫"),
    (["windows-1255"], [0xE0, 0xC7], "\u{5D0}\u{5B7}"),
    (["windows-874", "TIS-620"], [0xA1], "ก"),
  ]

  @Test(arguments: samples.indices)
  func `an encoding of single bytes can be read`(index: Int) {
    let (names, bytes, text) = Self.samples[index]
    for name in names {
      let head = Array("<?xml version='1.0' encoding='\(name)'?>".utf8)
      let content = bytes + Array("</".utf8)
      let document = head + "<a><node x='".utf8 + bytes + "'>".utf8 + content + "node></a>".utf8
      // The error element is read in the same encoding, behind a mistake too.
      let early = head + "<a><error>".utf8 + content + "error>".utf8
      let late = head + "<a>& <error>".utf8 + content + "error>".utf8
      for cutting in Cutting.several {
        let found = XMLCase(document).read(cutting)
        #expect(found.values.map { Array($0.text.utf8) } == [Array(text.utf8)], "\(name)")
        #expect(found.values.first?["x"] == text && found.error == nil, "\(name), \(cutting)")
        for broken in [early, late] {
          let error = XMLCase(broken, error: "error").read(cutting).error
          #expect(error?.element?.text == text, "\(name), \(cutting)")
        }
      }
    }
  }

  @Test func `a byte without a character is malformed`() {
    for (name, byte) in [("windows-1252", 0x81), ("ISO-8859-7", 0xFF), ("ascii", 0x80)] {
      let head = Array("<?xml version='1.0' encoding='\(name)'?><a><node/>".utf8)
      let document = head + [UInt8(byte)] + Array("</a>".utf8)
      for cutting in Cutting.several {
        let found = XMLCase(document).read(cutting)
        #expect(found.error?.code == .malformed && found.values.count == 1, "\(name)")
        #expect(found.error?.offset == head.count, "\(name), \(cutting)")
      }
    }
  }

  @Test func `iconv is asked for names of the list alone`() {
    var table = [Int32](repeating: 0, count: 256)
    for name in [
      "CP1251//TRANSLIT", "/etc/passwd", "../../CP1251", "CP1251,", "", "ISO-2022-CN-EXT", "UTF-16",
      "IBM037", String(repeating: "x", count: 1_000_000), "windows-12511111111111",
    ] {
      #expect(unsafe !cll_encoding_table(name, &table), "\(name.prefix(40))")
    }
    #expect(unsafe cll_encoding_table("-_windows--1251", &table) && table[0xCF] == 0x41F)
  }

  @Test(arguments: [
    ("<?xml version='1.0' encoding='Shift_JIS'?><a/>", "Shift_JIS"),
    ("<?xml version='1.0' encoding='ISO-2022-CN-EXT'?><a/>", "ISO-2022-CN-EXT"),
    ("<?xml version='1.0' encoding='IBM037'?><a/>", "IBM037"),
    ("<?xml version='1.0' encoding='UTF-7'?><a/>", "UTF-7"),
    ("<?xml version='1.0' encoding='UTF-16'?><a/>", "UTF-16"),
    ("\0\0\0<\0\0\0a", "UTF-32"), ("\u{4C}o\u{00}\u{00}", ""),
  ])
  func `an encoding that cannot be read is named`(document: String, name: String) {
    for cutting in Cutting.several {
      let error = XMLCase(document).read(cutting).error
      #expect(error?.encoding == (name.isEmpty ? nil : name), "\(cutting)")
      if !name.isEmpty { #expect(error?.code == .unreadableEncoding) }
    }
  }

  @Test(arguments: [
    "<!DOCTYPE node>",
    "<!DOCTYPE svg PUBLIC \"-//W3C//DTD SVG 1.1//EN\" 'http://x.org/svg[1].dtd'>",
    "<!DOCTYPE plist SYSTEM\n'a>b<c>\"' >", "<!DOCTYPE п SYSTEM ''>", "\n<!-- c --><!DOCTYPE a\t>",
  ])
  func `a declaration without an internal subset is skipped`(declaration: String) {
    let root = "\n<a x='1'><node>é&amp;</node><b/></a>\n<!-- d -->"
    for head in ["<?xml version='1.0' standalone='no'?>", "\u{FEFF}", ""] {
      let plain = XMLCase(head + root).read()
      #expect(plain.values.map(\.text) == ["é&"])
      let document = head + declaration + root
      for cutting in Cutting.several {
        #expect(XMLCase(document).read(cutting) == plain, "\(cutting)")
      }
      // Places behind it are those of the document.
      let broken = document + "&"
      for cutting in Cutting.several {
        let error = XMLCase(broken).read(cutting).error
        #expect(error?.code == .malformed && error?.offset == document.utf8.count, "\(cutting)")
      }
      for length in head.utf8.count..<(head + declaration).utf8.count {
        let cut = XMLCase(document.utf8.prefix(length)).read(.pairs)
        #expect(cut.error?.code == .truncated && cut.error?.offset == length, "\(length)")
      }
    }
  }

  @Test func `a declaration is read in the encoding of the document`() {
    let head = "<?xml version='1.0' encoding='KOI8-R'?><!DOCTYPE "
    let document =
      Array(head.utf8) + [0xF0] + Array("><node>".utf8) + [0xF0, 0x3C] + Array("/node>".utf8)
    let units = "\u{FEFF}<!DOCTYPE п><node>п</node>".utf16.flatMap {
      [UInt8($0 >> 8), UInt8($0 & 255)]
    }
    for cutting in Cutting.several {
      #expect(XMLCase(document).read(cutting).values.map(\.text) == ["П"], "\(cutting)")
      #expect(XMLCase(units).read(cutting).values.map(\.text) == ["п"], "\(cutting)")
    }
  }
}
