// SPDX-License-Identifier: Apache-2.0

import LongLinkReaders
import Testing

/// Documents made by chance, which are read whole and in parts.
@Suite struct XMLCutTests {
  /// Makes documents, and says what is in them.
  struct Writer {
    var chance: Chance
    var text = ""
    /// The text of each node, as it is to be read.
    var nodes: [String] = []

    private static let words = [
      "x", "é", "日本", "𝄞", " ", "\n", "]]", "]", "&amp;", "&#x1F600;", "&lt;", ">", "-", "'", "\"",
      "\u{301}", "word word word",
    ]

    init(seed: UInt64) {
      chance = Chance(seed: seed)
      text = chance.next() & 1 == 0 ? "<?xml version='1.0' encoding='utf-8'?>\n" : "\u{FEFF}"
      extra()
      text += "<feed xmlns:p='urn:p'>"
      for _ in 0..<Int.random(in: 1...12, using: &chance) { item() }
      text += "</feed>"
      extra()
    }

    private mutating func word() -> (written: String, read: String) {
      let written = Self.words.randomElement(using: &chance) ?? "x"
      // `]]>` may not stand in text.
      if written == ">", text.hasSuffix("]]") { return ("x", "x") }
      let read = ["&amp;": "&", "&#x1F600;": "😀", "&lt;": "<"][written] ?? written
      return (written, read)
    }

    private mutating func extra() {
      switch Int.random(in: 0..<4, using: &chance) {
      case 0: text += "<!-- <node> ]]> & - -->"
      case 1: text += "<?p <node> ?? > ?>"
      default: break
      }
    }

    private mutating func item() {
      extra()
      switch Int.random(in: 0..<4, using: &chance) {
      case 0:
        text += "<p:skip a=\"<\">".replacing("<\"", with: "&lt;>'\"")
        text += word().written + "</p:skip>"
      case 1:
        text += "<box>"
        item()
        text += "</box >"
      default:
        text += "<node a='>' >"
        nodes.append(content(depth: 0))
        text += "</node>"
      }
    }

    private mutating func content(depth: Int) -> String {
      var read = ""
      for _ in 0..<Int.random(in: 0...8, using: &chance) {
        switch Int.random(in: 0..<8, using: &chance) {
        case 0 where depth < 5:
          text += "<p:node b=\"'\">"
          read += content(depth: depth + 1)
          text += "</p:node\n>"
        case 1:
          let plain = "<x>&amp;]] ] é]"
          text += "<![CDATA[\(plain)]]>"
          read += plain
        case 2:
          extra()
        default:
          let word = word()
          text += word.written
          read += word.read
        }
      }
      return read
    }
  }

  @Test(arguments: 0..<60)
  func `parts give what the whole gives`(seed: UInt64) {
    let writer = Writer(seed: seed)
    let whole = XMLCase(writer.text).read()
    #expect(whole.error == nil, "\(writer.text)")
    #expect(whole.values.map(\.text) == writer.nodes, "\(writer.text)")
    for cutting in Cutting.several {
      #expect(XMLCase(writer.text).read(cutting) == whole, "\(cutting)")
    }
  }

  @Test(arguments: 0..<120)
  func `parts of damaged documents give what the whole gives`(seed: UInt64) {
    var document = Array(Writer(seed: seed).text.utf8)
    var chance = Chance(seed: seed &+ 1_000)
    for _ in 0..<Int.random(in: 1...3, using: &chance) {
      let place = Int.random(in: 0..<document.count, using: &chance)
      switch Int.random(in: 0..<4, using: &chance) {
      case 0: document[place] ^= 1 << UInt8.random(in: 0..<8, using: &chance)
      case 1: document.remove(at: place)
      case 2: document.insert(contentsOf: "<error>e</error>".utf8, at: place)
      default: document.insert(UInt8(ascii: "<"), at: place)
      }
    }
    for error in [nil, "error"] {
      let damaged = XMLCase(document, error: error)
      let whole = damaged.read()
      for cutting in Cutting.several {
        let found = damaged.read(cutting)
        #expect(found.values == whole.values, "\(cutting)")
        #expect(found.error == whole.error, "\(cutting): \(damaged.testDescription)")
      }
    }
  }
}
