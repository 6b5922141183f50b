// SPDX-License-Identifier: Apache-2.0

import LongLinkReaders
import Testing

@Suite struct JSONReaderTests {
  private func expect(_ json: JSONCase, _ values: [String], _ code: ReaderError.Code? = nil) {
    let whole = json.read()
    #expect(whole.values == values)
    #expect(whole.error?.code == code)
    for cutting in Cutting.several {
      #expect(json.read(cutting) == whole, "\(cutting)")
    }
  }

  private static let values = [
    "1", "-2.5e10", "true", "false", "null", #""""#, #""a\"]\\""#, #""é𝄞""#, "[]", "{}",
    #"[[1, 2], {"a": "]}"}]"#, #"{"x": [{"y": "\\\""}], "z": null}"#,
    "[" + String(repeating: #"{"key": "val\"ue", "list": [1, 2]}, "#, count: 20) + "0]",
    "\"" + String(repeating: #"long \\ \" \u005c {["#, count: 30) + "\"",
  ]

  @Test func `the elements of an array are its values`() {
    expect(JSONCase("[" + Self.values.joined(separator: ",") + "]"), Self.values)
    expect(JSONCase(" [\n" + Self.values.joined(separator: " ,\r\n\t") + " ]\n"), Self.values)
    expect(JSONCase("[]"), [])
    expect(JSONCase("\u{FEFF} [ ] "), [])
  }

  @Test func `the elements at a path are found, and the rest is skipped`() {
    let list = Self.values.joined(separator: ",")
    for document in [
      #"{"items":[\#(list)]}"#,
      #" { "skip" : {"items": [9, "]"]}, "items" : [\#(list)] , "more": [1], "n": 5 } "#,
      #"{"it": 1, "itemss": [2], "\u0069t\u0065ms": [\#(list)], "\"": "\""}"#,
    ] {
      expect(JSONCase(document, .path("items[*]")), Self.values)
    }
    expect(
      JSONCase(#"{"a":{"b":[1]},"b":[2],"a":{"b":[{"b":[3]}]}}"#, .path("a.b[*]")),
      ["1", #"{"b":[3]}"#])
    expect(
      JSONCase(
        #"{"pages":[{"items":[1,2]},{"items":null},{},7,{"items":[3]}]}"#,
        .path("pages[*].items[*]")), ["1", "2", "3"])
    expect(JSONCase("[[1,[2]],[],3,[4]]", .path("[*][*]")), ["1", "[2]", "4"])
    expect(JSONCase(#"[{"a":[1]},{"a":[2]}]"#, .path("[*].a[*]")), ["1", "2"])
    expect(JSONCase("{\"\u{65E5}/\u{1D11E}\":[1]}", .path("日/𝄞[*]")), ["1"])
    expect(JSONCase(#"{"\u65e5\/\uD834\udd1e":[1]}"#, .path("日/𝄞[*]")), ["1"])
  }

  @Test func `a path that is not there is an error at the end`() {
    for document in [
      #"{"item": [1]}"#, #"{"items": {"a": 1}}"#, "[1]", "7", "null", #"{"a":null}"#,
      #"{"items": false}"#,
    ] {
      expect(JSONCase(document, .path("items[*]")), [], .notFound)
    }
    expect(JSONCase(#"{"items": 1"#, .path("items[*]")), [], .truncated)
    expect(JSONCase("{}"), [], .notFound)
  }

  @Test func `null in place of an array is no elements`() {
    expect(JSONCase(#"{"items": null}"#, .path("items[*]")), [])
    expect(JSONCase(" null ", .array), [])
    expect(JSONCase("[null]", .path("[*].items[*]")), [], .notFound)
    expect(JSONCase("[null]", .path("[*][*]")), [])
    expect(JSONCase(#"{"items": nul}"#, .path("items[*]")), [], .malformed)
    expect(JSONCase(#"{"items": nul"#, .path("items[*]")), [], .truncated)
    expect(JSONCase("null", .path("items[*]")), [], .notFound)
    // As for an array without elements, nothing is further inside.
    for outer in ["null", "[]"] {
      expect(JSONCase(#"{"pages":\#(outer)}"#, .path("pages[*].items[*]")), [], .notFound)
    }
  }

  @Test(arguments: [JSONReader.Shape.array, .path("[*][*]"), .lines, .concatenated])
  func `a part of a byte order mark is malformed`(shape: JSONReader.Shape) {
    for (head, code) in [
      ([0xEF], ReaderError.Code.malformed), ([0xEF, 0xBB], .malformed), ([0xBB, 0xBF], .malformed),
      ([0xEF, 0xBF], .malformed), ([0xEF, 0x20, 0xBF], .malformed), ([0x20, 0xBB], .malformed),
      ([0x0A, 0xBB, 0xBF], .malformed), ([0xEF, 0xBB, 0xBF, 0xEF, 0xBB, 0xBF], .malformed),
    ] as [([UInt8], ReaderError.Code)] {
      for rest in ["[[1]]", "{}", " "] {
        var json = JSONCase(rest, shape)
        json.document = head + json.document
        expect(json, [], code)
      }
      var alone = JSONCase("", shape)
      alone.document = head
      #expect(alone.read().error != nil)
      expect(alone, [], alone.read().error?.code)
    }
    var whole = JSONCase("[[1]]", shape)
    let plain = whole.read()
    whole.document = [0xEF, 0xBB, 0xBF] + whole.document
    expect(whole, plain.values)
  }

  @Test func `values can follow each other`() {
    expect(JSONCase(Self.values.joined(separator: "\n"), .lines), Self.values)
    expect(JSONCase(Self.values.joined(separator: "\r\n\n ") + "\n", .lines), Self.values)
    expect(JSONCase(Self.values.joined(separator: " "), .concatenated), Self.values)
    expect(
      JSONCase(#"{}[]"a""b"1"c"true{}"#, .concatenated),
      ["{}", "[]", #""a""#, #""b""#, "1", #""c""#, "true", "{}"])
    expect(JSONCase("", .lines), [])
    expect(JSONCase(" \n ", .concatenated), [])
    expect(JSONCase("1 2\n", .lines), ["1"], .malformed)
    expect(JSONCase("{}{}\n", .lines), ["{}"], .malformed)
  }

  @Test func `an element is returned with its last byte`() throws {
    for shape in [JSONReader.Shape.array, .lines, .concatenated, .path("a.b[*]")] {
      for value in Self.values where !"-1tfn".contains(value.first!) {
        var reader = JSONReader(shape)
        if shape == .array { reader.feed("[".utf8) }
        if shape == .path("a.b[*]") { reader.feed(#"{"a":{"b":["#.utf8) }
        reader.feed(value.utf8.dropLast())
        #expect(try reader.next() == nil)
        reader.feed(value.utf8.suffix(1))
        #expect(try reader.next() == Array(value.utf8))
      }
    }
    var reader = JSONReader(.array)
    reader.feed("[1".utf8)
    #expect(try reader.next() == nil)
    reader.feed(",".utf8)
    #expect(try reader.next() == [UInt8(ascii: "1")])
  }

  @Test func `a document that ends open is truncated`() {
    let document = #"{"a": [{"b": "c\"d"}, "é", true, 12], "e": [1]}"#
    for length in 0..<document.utf8.count {
      var json = JSONCase(document, .path("a[*]"))
      json.document = Array(document.utf8.prefix(length))
      #expect(json.read().error?.code == .truncated, "\(length)")
      #expect(json.read(.bytes) == json.read(), "\(length)")
      let whole = [#"{"b": "c\"d"}"#, #""é""#, "true", "12"]
      #expect(whole.starts(with: json.read().values), "a number is whole, or is not given")
    }
    for shape in [JSONReader.Shape.lines, .concatenated] {
      for cut in ["{", #"{"a":1"#, #""a"#, "tru", "-", "1.", "[1,2", #""\"#] {
        expect(JSONCase("1\n" + cut, shape), ["1"], .truncated)
      }
    }
  }

  @Test func `what leads to the elements is checked`() {
    for document in [
      "[1 2]", "[1,]", "[,1]", "[1}", "[1]]", "[1],", "[1:2]", "[nul]", "[1.]", "[x]", "]",
      "[truex]",
    ] {
      let found = JSONCase(document).read()
      #expect(found.error?.code == .malformed, "\(document)")
      for cutting in Cutting.several { #expect(JSONCase(document).read(cutting) == found) }
    }
    for document in [
      #"{"a" [1]}"#, #"{a:[1]}"#, #"{"a":[1]"b":1}"#, #"{"a":[1],}"#, #"{,"a":[1]}"#, #"{"a":}"#,
      #"{"a":[1]]"#,
    ] {
      let found = JSONCase(document, .path("a[*]")).read()
      #expect(found.error?.code == .malformed, "\(document)")
    }
  }

  @Test func `depth and size are bounded`() {
    let deep = { (depth: Int) in
      String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
    }
    expect(JSONCase(deep(512)), [String(deep(511))])
    expect(JSONCase(deep(513)), [], .tooDeep)
    expect(JSONCase("{\"x\":" + deep(600) + "}", .path("a[*]")), [], .tooDeep)
    expect(JSONCase(deep(600), .lines), [], .tooDeep)
    let path = JSONReader.Shape.path(String(repeating: "[*]", count: 20))
    expect(JSONCase(deep(30), path, limits: .init(depth: 10)), [], .tooDeep)
    let limits = JSONReader.Limits(elementBytes: 100)
    let long = { (count: Int) in "\"\(String(repeating: "x", count: count - 2))\"" }
    expect(JSONCase("[\(long(100))]", limits: limits), [long(100)])
    expect(JSONCase("[\(long(101))]", limits: limits), [], .elementTooLarge)
    expect(JSONCase("[\(long(5000))", limits: limits), [], .elementTooLarge)
    let number = "1" + String(repeating: "0", count: 100)
    expect(JSONCase("[\(number)", limits: limits), [], .elementTooLarge)
    expect(JSONCase("{\(long(101)):1}", .path("a[*]"), limits: limits), [], .elementTooLarge)
    expect(JSONCase("{\"b\":\(long(5000)),\"a\":[1]}", .path("a[*]"), limits: limits), ["1"])
  }

  @Test func `paths are read`() {
    for path in [
      "items[*]", "[*]", "[*][*]", "a.b.c[*]", "a[*].b[*]", "日本[*]", "a b[*]", #"a"b[*]"#,
      #"["a.b"][*]"#, #"a["b"].c["d"][*]"#, #"[*]["a"][*]"#, #"["[*]"][*]"#, #"[""][*]"#,
    ] {
      #expect(JSONReader.Shape(path: path) != nil, "\(path)")
    }
    for path in [
      "", "items", "items[0]", "items[*].", ".items[*]", "a..b[*]", "a[*]b", "a[*].b", "[",
      "a]b[*]", #"["a"]"#, #"["a][*]"#, #"["a"[*]"#, #"[a][*]"#, #"["a"]b[*]"#, #"a.["b"][*]"#,
      #"["\x"][*]"#, #"["a\"][*]"#, #"[""#, #"["\u12"][*]"#,
    ] {
      #expect(JSONReader.Shape(path: path) == nil, "\(path)")
    }
    #expect(JSONReader.Shape(path: "[*]") == .array)
    #expect(JSONReader.Shape(path: #"["a"]["b"][*]"#) == .path("a.b[*]"))
    expect(JSONCase(#"{"d":{"results":[2]},"d.results":[1]}"#, .path(#"["d.results"][*]"#)), ["1"])
    expect(JSONCase(#"{"a]\"\u005B":{"":[1]}}"#, .path(#"["a]\"\u005b"][""][*]"#)), ["1"])
  }
}
