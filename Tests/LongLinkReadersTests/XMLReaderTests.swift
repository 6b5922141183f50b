// SPDX-License-Identifier: Apache-2.0

import LongLinkReaders
import Testing

/// What is read from documents that are in order.
@Suite struct XMLReaderTests {
  @Test func `an element has its name, attributes, text and children`() throws {
    let found = XMLCase(
      """
      <?xml version="1.0"?>
      <feed><skip>no</skip><node id="7" name='a "b" &amp; &#x63;'>one<x a=""/> two \
      <y>three <z/>four</y>&lt;<![CDATA[<five>]]></node></feed>
      """
    ).read()
    #expect(found.error == nil)
    let node = try #require(found.values.first)
    #expect(found.values.count == 1)
    #expect(node.name == "node")
    #expect(node.attributes.map(\.name) == ["id", "name"])
    #expect(node.attributes.map(\.value) == ["7", #"a "b" & c"#])
    #expect(node["id"] == "7" && node["i"] == nil && node["idx"] == nil)
    #expect(node.text == "one two three four<<five>")
    #expect(node.children.map(\.name) == ["x", "y"])
    #expect(node.child("x")?["a"] == "" && node.child("x")?.text == "")
    #expect(node.child("y")?.text == "three four" && node.child("z") == nil)
    #expect(node.child("y")?.children.map(\.text) == [""])
  }

  @Test func `elements are found at any depth, and not inside each other`() {
    let found = XMLCase(
      "<a><node>1</node><b><c><other>2</other><node>3<node>4</node><other/></node></c></b></a>",
      "node", "other"
    ).read()
    #expect(found.error == nil)
    #expect(found.values.map(\.text) == ["1", "2", "34"])
    #expect(found.values.last?.children.map(\.name) == ["node", "other"])
  }

  @Test func `without children there is only text`() throws {
    let found = XMLCase("<node a='1'>x<b c='2'>y</b>z</node>", children: false).read()
    let node = try #require(found.values.first)
    #expect(node.text == "xyz" && node["a"] == "1" && node.children.isEmpty)
  }

  @Test func `the root can be chosen, with a mark in front and comments around`() {
    let found = XMLCase("\u{FEFF}<!-- a --><?b c?><node>\r\n&#13;\r</node><!-- d -->\n").read()
    #expect(found == Outcome(values: found.values) && found.values.map(\.text) == ["\n\r\n"])
  }

  @Test(arguments: Cutting.several)
  func `an element is returned with its last byte`(cutting: Cutting) throws {
    let nodes = [
      "<node>é</node>", "<node/>", "<node a='>'><![CDATA[]]]]></node>", "<node>]</node >",
    ]
    var reader = XMLReader(elements: ["node"], error: "error")
    reader.feed("<feed>".utf8)
    #expect(try reader.next() == nil)
    for node in nodes {
      let bytes = Array(node.utf8)
      for part in cutting.parts(of: Array(bytes.dropLast())) {
        reader.feed(part)
        #expect(try reader.next() == nil)
      }
      reader.feed(bytes.suffix(1))
      #expect(try reader.next()?.name == "node", "\(node)")
      #expect(try reader.next() == nil)
    }
    // The document is still open.
    reader.feed("<error>e</error>".utf8)
    #expect(throws: ReaderError.self) { try reader.next() }
  }

  @Test func `elements are parsed only as they are taken`() throws {
    var reader = XMLReader(elements: ["node"])
    // What is broken is behind an element, and found when that has been taken.
    reader.feed("<a><node>1</node><node>2</node></b>".utf8)
    #expect(try reader.next()?.text == "1")
    reader.feed("rest".utf8)
    #expect(try reader.next()?.text == "2")
    #expect(throws: ReaderError.self) { try reader.next() }
  }

  @Test(arguments: [
    ("UTF-16LE", true), ("UTF-16BE", true), ("UTF-16LE", false), ("UTF-16BE", false),
  ])
  func `UTF-16 can be read`(order: String, hasMark: Bool) {
    let text = "<?xml version='1.0' encoding='UTF-16'?><a><node x='ü'>𝄞 ]]&gt; é</node></a>"
    let units = (hasMark ? [0xFEFF] : []) + Array(text.utf16)
    let bytes = units.flatMap { unit in
      let pair = [UInt8(unit >> 8), UInt8(unit & 255)]
      return order == "UTF-16BE" ? pair : pair.reversed()
    }
    for cutting in Cutting.several {
      let found = XMLCase(bytes).read(cutting)
      #expect(found.error == nil, "\(cutting)")
      #expect(found.values.map(\.text) == ["𝄞 ]]> é"] && found.values[0]["x"] == "ü")
    }
    // Half a character, and half of a pair.
    #expect(XMLCase(bytes.dropLast()).read(.bytes).error?.code == .truncated)
    let broken = Array(units.prefix(while: { $0 & 0xF800 != 0xD800 })) + [0xD834, 0x20]
    let brokenBytes = broken.flatMap { unit in
      let pair = [UInt8(unit >> 8), UInt8(unit & 255)]
      return order == "UTF-16BE" ? pair : pair.reversed()
    }
    #expect(XMLCase(brokenBytes).read(.bytes).error?.code == .malformed)
  }
}
