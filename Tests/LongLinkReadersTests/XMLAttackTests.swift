// SPDX-License-Identifier: Apache-2.0

import LongLinkReaders
import Testing

/// Documents made to cost more than they may.
@Suite struct XMLAttackTests {
  static let laughs = """
    <?xml version="1.0"?>
    <!DOCTYPE lolz [
      <!ENTITY lol "lol">
      <!ENTITY lol1 "&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;">
      <!ENTITY lol2 "&lol1;&lol1;&lol1;&lol1;&lol1;&lol1;&lol1;&lol1;&lol1;&lol1;">
    ]>
    <node>&lol2;</node>
    """

  @Test(arguments: [
    laughs, "<!DOCTYPE node []><node/>", "<!DOCTYPE node SYSTEM '[' [",
    "\u{FEFF}<!-- x --><!DOCTYPE node [<!ENTITY x SYSTEM 'http://example.org/'>]><node>&x;</node>",
    "<!DOCTYPE node PUBLIC 'a' 'b' [<!ATTLIST node a CDATA 'x'>]><node/>",
  ])
  func `declarations with an internal subset are refused`(document: String) {
    for cutting in Cutting.several {
      let found = XMLCase(document).read(cutting)
      #expect(found.values.isEmpty && found.error?.code == .doctype, "\(cutting)")
    }
  }

  @Test func `entities are refused, whatever is declared outside`() {
    for cutting in Cutting.several {
      for declaration in ["", "<!DOCTYPE node>", "<!DOCTYPE node SYSTEM 'file:///etc/passwd'>"] {
        for node in ["<node>&lol;</node>", "<node a='&lol;'/>", "<node>&nbsp;</node>"] {
          let error = XMLCase(declaration + node).read(cutting).error
          #expect(error?.code == .entity, "\(declaration + node), \(cutting)")
        }
      }
    }
  }

  private func expectSame(
    _ xml: XMLCase, _ code: ReaderError.Code, most: Int, _ parts: [Int] = [1, 1_000, 1 << 20]
  ) {
    for size in parts {
      var reader = xml.reader
      var thrown: ReaderError?
      do throws(ReaderError) {
        var place = 0
        while place < xml.document.count {
          let end = min(xml.document.count, place + size)
          reader.feed(xml.document[place..<end])
          while try reader.next() != nil {}
          place = end
        }
        reader.finish()
        while try reader.next() != nil {}
      } catch {
        thrown = error
      }
      #expect(thrown?.code == code, "\(size)")
      #expect(reader.mostAllocatedBytes <= most + 2 * min(size, xml.document.count), "\(size)")
    }
  }

  @Test func `depth is bounded`() {
    let deep = { (depth: Int) in
      String(repeating: "<a>", count: depth) + String(repeating: "</a>", count: depth)
    }
    #expect(XMLCase(deep(256)).read().error == nil)
    expectSame(XMLCase(deep(257)), .tooDeep, most: 200_000)
    expectSame(XMLCase(deep(100_000)), .tooDeep, most: 200_000)
  }

  @Test func `a chosen element is bounded, and what is not chosen may be long`() {
    var limits = XMLReader.Limits()
    limits.elementBytes = 10_000
    let text = String(repeating: "text &amp; ", count: 10_000)
    expectSame(
      XMLCase("<a><node>\(text)</node></a>", limits: limits), .elementTooLarge, most: 200_000)
    let parts = String(repeating: "<b c='d'/>", count: 10_000)
    expectSame(
      XMLCase("<a><node>\(parts)</node></a>", limits: limits), .elementTooLarge, most: 200_000)
    let other = XMLCase("<a>\(text)\(parts)<![CDATA[\(text)]]></a>", limits: limits)
    #expect(other.read().error == nil && other.read(.random(seed: 1, longest: 500)).error == nil)
    // Exactly so many bytes are allowed: the name and four marks are added.
    let exact = String(repeating: "x", count: 10_000 - 4 - 3)
    #expect(XMLCase("<node>\(exact)</node>", limits: limits).read(.pairs).error == nil)
    expectSame(
      XMLCase("<node>\(exact)x</node>", limits: limits), .elementTooLarge, most: 200_000)
  }

  @Test func `a token is bounded`() {
    var limits = XMLReader.Limits()
    limits.tokenBytes = 5_000
    let long = String(repeating: "x", count: 20_000)
    for token in [
      "<\(long)>", "</\(long)>", "<b c='\(long)'/>", "<b \(long)='c'/>", "<!-- \(long) -->",
      "<?\(long)?>", "<?p \(long)?>", "&\(long);", "<b\(String(repeating: " ", count: 20_000))/>",
    ] {
      expectSame(XMLCase("<node>\(token)</node>", limits: limits), .tokenTooLarge, most: 100_000)
      let declared = XMLCase("<!DOCTYPE a><node>\(token)</node>", limits: limits)
      for cutting in Cutting.several {
        #expect(declared.read(cutting).error?.code == .tokenTooLarge, "\(cutting)")
      }
    }
    for declaration in ["<!DOCTYPE \(long)>", "<!DOCTYPE a SYSTEM '\(long)'>"] {
      expectSame(XMLCase(declaration, limits: limits), .tokenTooLarge, most: 100_000)
    }
    let exact = "<node a='\(String(repeating: "x", count: 5_000 - 12))'/>"
    #expect(XMLCase(exact, limits: limits).read(.bytes).error == nil)
  }

  @Test func `many attributes cost no more than the parser's limit`() {
    let attributes = (0..<60_000).map { "a\($0)=''" }.joined(separator: " ")
    let document = "<node \(attributes)/>"
    #expect(document.utf8.count < 1 << 20)
    #expect(XMLCase(document).read().values.first?.attributes.count == 60_000)
    var limits = XMLReader.Limits()
    limits.parserBytes = 1 << 20
    expectSame(XMLCase(document, limits: limits), .outOfMemory, most: 4 << 20, [1_000, 1 << 20])
  }

  @Test func `ever new names cost no more than the parser's limit`() {
    var limits = XMLReader.Limits()
    limits.parserBytes = 1 << 20
    let many = (0..<100_000).map { "<a\($0)/>" }.joined()
    expectSame(XMLCase("<a>\(many)</a>", limits: limits), .outOfMemory, most: 1 << 21, [1 << 20])
  }

  @Test func `a long tag that arrives byte by byte is looked at once`() {
    // A parser that began anew with each byte would look at 10^12 bytes here.
    let value = String(repeating: ">", count: 1_000_000)
    let document = "<a><node b='\(value)'>\(value)</node><!--\(value)--></a>"
    #expect(XMLCase(document).read(.bytes).values.map(\.text) == [value])
  }

  @Test(arguments: [("<a>", ""), ("<a></b>", ""), ("<a>", "?>"), ("<a></b>", "?>")])
  func `many beginnings of an error element are tried only so often`(_ ends: (String, String)) {
    // Each of them would be parsed to the end of the document, which takes minutes.
    let many = String(repeating: "<error><?xml ", count: 75_000)
    let document = ends.0 + many + ends.1
    #expect(document.utf8.count < 1 << 20)
    let found = XMLCase(document, error: "error").read()
    #expect(found.error?.code == (ends == ("<a>", "") ? .truncated : .malformed))
    // The first of them is part of the document, and is not tried on its own.
    for (count, isFound) in [(64, true), (65, false)] {
      let others = String(repeating: "<error><?x ", count: count)
      let found = XMLCase("<a>\(others)<error>boom</error>", error: "error").read()
      #expect(found.error?.code == (isFound ? .errorElement : .truncated), "\(count)")
    }
  }

  @Test func `memory does not grow with the document`() throws {
    var reader = XMLReader(elements: ["node"], error: "error")
    reader.feed("<feed>".utf8)
    let text = String(repeating: "0123456789abcdef", count: 64)
    let part = Array("<node id='1'><x>\(text)</x><![CDATA[\(text)]]></node><!-- \(text) -->".utf8)
    var count = 0
    var early = 0
    for round in 0..<4_000 {
      // The cuts wander through the elements.
      let cut = round % part.count
      reader.feed(part[..<cut])
      while try reader.next() != nil { count += 1 }
      reader.feed(part[cut...])
      while try reader.next() != nil { count += 1 }
      if round == 2 * part.count / 3 { early = reader.mostAllocatedBytes }
    }
    #expect(count == 4_000)
    #expect(reader.mostAllocatedBytes == early && early < 128 << 10)
  }

  @Test func `a large element is in memory once while it arrives`() throws {
    let size = 8 << 20
    var reader = XMLReader(elements: ["node"])
    reader.feed("<feed><node>".utf8)
    let part = [UInt8](repeating: 0x78, count: 64 << 10)
    for _ in 0..<(size / part.count) {
      reader.feed(part)
      #expect(try reader.next() == nil)
    }
    #expect(reader.mostAllocatedBytes < size + 256 << 10)
    reader.feed("</node>".utf8)
    // The element that is returned is the second time.
    #expect(try reader.next()?.textBytes.count == size)
    #expect(reader.mostAllocatedBytes < size + 256 << 10)
    #expect(reader.allocatedBytes < 256 << 10)
  }
}
