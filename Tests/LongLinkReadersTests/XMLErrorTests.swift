// SPDX-License-Identifier: Apache-2.0

import LongLinkReaders
import Testing

/// Documents that are broken, cut off, or end with an error element.
@Suite struct XMLErrorTests {
  /// Each has the element <node>1</node> first, and then an error element with the text "boom".
  static let foundAtOnce = [
    "<a><node>1</node><error code='5'>boom</error></a>",
    "<a><node>1</node><error code='5'>boom</error>",
    "<a><node>1</node><error code='5'>boom</error> &&& <<< \u{1} </b>",
    "<a><node>1</node><b><c><error code='5'>boom</error>",
    "<a><node>1</node><node>half <error code='5'>boom</error>",
    "<a><node>1</node><node>half</a><error code='5'>boom</error>",
    "<a><node>1</node> Warning: a < b && c <error code='5'>boom</error>",
    "<a><node>1</node><node x=\"half <error code='5'>boom</error>",
    "<a><node>1</node><node x='half <error code='5'>boom</error>",
    "<a><node>1</node><node <error code='5'>boom</error>",
    "<a><node>1</node><<error code='5'>boom</error>",
    "<a><node>1</node></<error code='5'>boom</error>",
    "<a><node>1</node>&am<error code='5'>boom</error>",
    "<a><node>1</node>&nbsp;<error code='5'>boom</error>",
    "<a><node>1</node></a> <error code='5'>boom</error>",
    "<a><node>1</node></a><br><errors/><error code='5'>boom</error> <error>2</error>",
    "<a><node>1</node>]]><error <error code='5'>boom</error>",
    "<a><node>1</node><!-- -- <error code='5'>boom</error>",
    "<a><node>1</node><![CDA<error code='5'>boom</error>",
    "<a><node>1</node>\u{1}\u{2}<error code='5'>boom</error>",
  ]

  /// In these something has begun in which the error element could be text, unless it ends there.
  static let foundAtTheEnd = [
    "<a><node>1</node><node><![CDATA[half <error code='5'>boom</error>",
    "<a><node>1</node><node><![CDATA[half ]] <error code='5'>boom</error> ]]",
    "<a><node>1</node><!-- half <error code='5'>boom</error>",
    "<a><node>1</node><?half <error code='5'>boom</error>",
  ]

  @Test(arguments: foundAtOnce + foundAtTheEnd)
  func `an error element ends the document, wherever it is`(document: String) {
    for cutting in Cutting.several {
      let found = XMLCase(document, error: "error").read(cutting)
      #expect(found.values.map(\.text) == ["1"], "\(cutting)")
      #expect(found.error?.code == .errorElement, "\(cutting): \(found.error as Any)")
      #expect(found.error?.element?.text == "boom" && found.error?.element?["code"] == "5")
    }
  }

  @Test func `an error element is thrown with its last byte, in an open document`() throws {
    for document in Self.foundAtOnce {
      let last = document.firstRange(of: "</error>")?.upperBound ?? document.endIndex
      var reader = XMLReader(elements: ["node"], error: "error")
      reader.feed(document[..<last].utf8.dropLast())
      #expect(try reader.next()?.text == "1")
      #expect(try reader.next() == nil, "\(document)")
      reader.feed(">".utf8)
      #expect(throws: ReaderError.self, "\(document)") { try reader.next() }
    }
  }

  @Test func `an error element can be the root, and has children`() {
    let found = XMLCase(
      "<error><code>5</code><text>boom</text></error>", error: "error", children: false
    ).read()
    #expect(found.error?.element?.children.map(\.text) == ["5", "boom"])
    #expect("\(found.error!)" == "an error element <error>: 5boom")
  }

  @Test func `the text of an error has the attributes, escaped and cut`() throws {
    let attribute = XMLCase("<a><error code='5' x='&quot;&#10;'>full</error>", error: "error")
    let error = try #require(attribute.read().error)
    #expect("\(error)" == #"an error element <error code="5" x="&quot;\n">: full"#)
    let long = String(repeating: "x", count: 5_000)
    let many = (0..<100).map { "a\($0)='\(long)'" }.joined(separator: " ")
    let cut = try #require(XMLCase("<error \(many)>\(long)</error>", error: "error").read().error)
    #expect("\(cut)".hasPrefix(#"an error element <error a0="xxx"#))
    #expect("\(cut)".utf8.count < 450)
  }

  @Test func `without a chosen error element, its name means nothing`() {
    let found = XMLCase("<a><error/><node>1</node></a>").read()
    #expect(found.error == nil && found.values.map(\.text) == ["1"])
  }

  @Test func `a document that ends open is truncated`() {
    let document = Array(
      """
      <?xml version="1.0"?><!-- c --><?p i?><a x="1"><node>é&amp;<![CDATA[]]x]]></node>
      <node>2</node></a>
      """.utf8)
    let whole = XMLCase(document).read()
    #expect(whole.error == nil && whole.values.count == 2)
    for length in 0..<(document.count) {
      for cutting in [Cutting.whole, .bytes] {
        for error in [nil, "error"] {
          let found = XMLCase(document[..<length], error: error).read(cutting)
          #expect(found.error?.code == .truncated, "\(length)")
          #expect(found.error?.offset == length)
          #expect(found.values == Array(whole.values.prefix(found.values.count)))
        }
      }
    }
  }

  @Test(arguments: [
    "<a><node>1</node></b>", "<a><node>1</node><b c='1' c='2'/></a>", "<a><node>1</node>]]></a>",
    "<a><node>1</node><b c=1/></a>", "<a><node>1</node></a>x", "<a><node>1</node></a><a/>",
    "<a><node>1</node>&#0;</a>", "<a><node>1</node>& </a>", "<a><node>1</node><1/></a>",
    "<a><node>1</node><!x></a>", "<a><node>1</node><!-x></a>", "<a><node>1</node><![CDATX[x</a>",
    "<a><node>1</node><!-- -- --></a>", "<a><node>1</node><b c='<'/></a>", "<a><node>1</node></a",
    "<a><node>1</node>\u{0}</a>", "<a><node>1</node><></a>", "<a><node>1</node><?xml v?></a>",
    "<a><node>1</node><b", "<a><node>1</node><b\u{FFFF}/></a>",
    "<a><node>1</node><!DOCTYPE a></a>", "<a><node>1</node></a><!DOCTYPE a>",
    "<!DOCTYPE a><a><node>1</node><!DOCTYPE a></a>",
  ])
  func `what is wrong is the same however the document is cut`(document: String) {
    let whole = XMLCase(document).read()
    #expect(whole.values.map(\.text) == ["1"])
    #expect(whole.error?.code == .malformed || whole.error?.code == .truncated)
    for cutting in Cutting.several {
      for error in [nil, "error"] {
        #expect(XMLCase(document, error: error).read(cutting) == whole, "\(cutting)")
      }
    }
  }

  @Test(arguments: [
    "<!DOCTYPE>", "<!DOCTYPEa>", "<!DOCTYPE 1>", "<!DOCTYPE a b>", "<!DOCTYPE a PUBLIC 'b'>",
    "<!DOCTYPE a PUBLIC '{' 'b'>", "<!DOCTYPE a SYSTEM>", "<!DOCTYPE a SYSTEM '' ]>", "<!DOC a>",
    "<!DOCTYPE a><!DOCTYPE a>", "<!DOCTYPE a <b>", "<!doctype a>", "<!DOCTYPE a 'b'>",
    "<!DOCTYPE a SYSTEM \u{1}>",
  ])
  func `a declaration that is not well-formed is malformed`(declaration: String) {
    for space in ["", " "] {
      let document = declaration + space + "<a><node>1</node></a>"
      let whole = XMLCase(document).read()
      #expect(whole.error?.code == .malformed && whole.values.isEmpty)
      let withError = XMLCase(document + "<error>boom</error>", error: "error")
      #expect(withError.read().error?.element?.text == "boom")
      for cutting in Cutting.several {
        #expect(XMLCase(document).read(cutting) == whole, "\(cutting)")
        #expect(withError.read(cutting) == withError.read(), "\(cutting)")
      }
    }
    // Without what follows, it is either malformed or not complete.
    for cutting in Cutting.several {
      #expect(XMLCase(declaration).read(cutting) == XMLCase(declaration).read(), "\(cutting)")
    }
  }

  @Test func `bytes that are not UTF-8 are malformed`() {
    for bad: [UInt8] in [[0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xE2, 0x82], [0xF5, 0x80]] {
      let document = Array("<a><node>1</node><node>".utf8) + bad + Array("</node></a>".utf8)
      let whole = XMLCase(document).read()
      #expect(whole.values.count == 1 && whole.error?.code == .malformed)
      for cutting in Cutting.several { #expect(XMLCase(document).read(cutting) == whole) }
    }
  }

  @Test func `an error element is looked for only so far`() {
    var limits = XMLReader.Limits()
    limits.searchedBytes = 100
    for (count, isFound) in [(80, true), (120, false)] {
      let rubbish = String(repeating: "x", count: count)
      let document = "<a></b>\(rubbish)<error>boom</error>"
      for cutting in Cutting.several {
        let found = XMLCase(document, error: "error", limits: limits).read(cutting)
        #expect(found.error?.code == (isFound ? .errorElement : .malformed), "\(cutting)")
      }
    }
    // Then it is thrown without waiting for more.
    var reader = XMLReader(elements: ["node"], error: "error", limits: limits)
    reader.feed("<a></b>".utf8)
    #expect(throws: Never.self) { try reader.next() }
    reader.feed(repeatElement(0x20, count: 120))
    #expect(throws: ReaderError.self) { try reader.next() }
    #expect(throws: ReaderError.self) { try reader.next() }
  }
}
