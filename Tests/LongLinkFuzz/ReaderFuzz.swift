// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkReaders

/// Documents: how they are cut makes no difference, and memory is bounded.
enum ReaderFuzz {
  // MARK: - XML

  static func runXML(_ bytes: [UInt8]) throws {
    var input = FuzzInput(bytes)
    let flags = input.byte()
    var limits = XMLReader.Limits(parserBytes: 1 << 20)
    // Small limits are reached by small inputs.
    if flags & 4 != 0 { limits.depth = 4 }
    if flags & 8 != 0 { limits.elementBytes = 60 }
    if flags & 16 != 0 { limits.tokenBytes = 40 }
    if flags & 32 != 0 { limits.searchedBytes = 50 }
    let cuts = [UInt8](input.take(4))
    let document = input.rest()
    let nothing = XMLOutcome(
      error: flags & 1 != 0 ? "e" : nil, children: flags & 2 == 0, limits: limits)
    let whole = try nothing.reading(document, [])
    let bytewise = try nothing.reading(document, [1])
    try expect(bytewise == whole, "byte by byte, the document differs")
    let inParts = try nothing.reading(document, cuts)
    try expect(inParts == whole, "in parts, the document differs")
  }

  private struct XMLOutcome: Equatable {
    let error: String?
    let children: Bool
    let limits: XMLReader.Limits
    var elements: [XMLReader.Element] = []
    var failure: ReaderError?

    init(error: String?, children: Bool, limits: XMLReader.Limits) {
      self.error = error
      self.children = children
      self.limits = limits
    }

    /// Reads a document in parts of these sizes, in turn; without any, whole, once its end is
    /// known.
    func reading(_ document: [UInt8], _ sizes: [UInt8]) throws -> XMLOutcome {
      var outcome = self
      try outcome.read(document, sizes)
      return outcome
    }

    private mutating func read(_ document: [UInt8], _ sizes: [UInt8]) throws {
      var reader = XMLReader(
        elements: ["n", "a"], error: error, children: children, limits: limits)
      var largestPart = 0
      do throws(ReaderError) {
        for part in ReaderFuzz.parts(of: document, sizes) {
          largestPart = max(largestPart, part.count)
          reader.feed(part)
          while !sizes.isEmpty, let element = try reader.next() { take(element) }
        }
        reader.finish()
        while let element = try reader.next() { take(element) }
      } catch {
        failure = error
        if let element = error.element { ReaderFuzz.look(into: element) }
      }
      let held = min(document.count, limits.elementBytes + limits.tokenBytes)
      try expect(
        reader.mostAllocatedBytes <= limits.parserBytes + 3 * (largestPart + held) + 65_536,
        "\(reader.mostAllocatedBytes) bytes were allocated")
    }

    private mutating func take(_ element: XMLReader.Element) {
      elements.append(element)
      ReaderFuzz.look(into: element)
    }
  }

  /// Uses all properties of an element.
  private static func look(into element: XMLReader.Element) {
    _ = (element.name, element.text, element["b"], element.child("n"), element.description)
    for attribute in element.attributes { _ = element[attribute.name] == attribute.value }
    for child in element.children { look(into: child) }
  }

  // MARK: - JSON

  static func runJSON(_ bytes: [UInt8]) throws {
    var input = FuzzInput(bytes)
    let flags = input.byte()
    let shape: JSONReader.Shape = input.pick(
      .array, .path("a[*]"), .lines, .concatenated, .path("[*].a.b[*]"))
    var limits = JSONReader.Limits()
    if flags & 1 != 0 { limits.depth = 3 }
    if flags & 2 != 0 { limits.elementBytes = 20 }
    let cuts = [UInt8](input.take(4))
    let document = input.rest()
    let whole = read(document, shape, limits, [])
    try expect(read(document, shape, limits, [1]) == whole, "byte by byte, the document differs")
    try expect(read(document, shape, limits, cuts) == whole, "in parts, the document differs")
    try compare(whole, with: document, shape)
  }

  private struct JSONOutcome: Equatable {
    var elements: [[UInt8]] = []
    var failure: ReaderError?
  }

  private static func read(
    _ document: [UInt8], _ shape: JSONReader.Shape, _ limits: JSONReader.Limits, _ sizes: [UInt8]
  ) -> JSONOutcome {
    var outcome = JSONOutcome()
    var reader = JSONReader(shape, limits: limits)
    do throws(ReaderError) {
      for part in parts(of: document, sizes) {
        reader.feed(part)
        while !sizes.isEmpty, let element = try reader.next() { outcome.elements.append(element) }
      }
      reader.finish()
      while let element = try reader.next() { outcome.elements.append(element) }
    } catch {
      outcome.failure = error
    }
    return outcome
  }

  /// What Foundation reads as an array has the same elements here.
  private static func compare(
    _ outcome: JSONOutcome, with document: [UInt8], _ shape: JSONReader.Shape
  ) throws {
    guard shape == .array, document.first == UInt8(ascii: "["),
      let array = try? JSONSerialization.jsonObject(with: Data(document)) as? [Any]
    else { return }
    switch outcome.failure?.code {
    case nil:
      try expect(outcome.elements.count == array.count, "\(array.count) elements are expected")
      let again = Array("[".utf8) + outcome.elements.joined(separator: [0x2C]) + Array("]".utf8)
      guard let repeated = try? JSONSerialization.jsonObject(with: Data(again)) as? [Any] else {
        throw FuzzFailure("the elements are no values")
      }
      try expect(text(of: repeated) == text(of: array), "the elements differ")
    case .tooDeep, .elementTooLarge:
      break
    case .malformed where document[outcome.failure?.offset ?? 0] == UInt8(ascii: "]"):
      // Foundation allows a comma behind the last element.
      break
    case let code?:
      throw FuzzFailure("an array that Foundation reads is \(code)")
    }
  }

  private static func text(of array: [Any]) -> Data? {
    try? JSONSerialization.data(withJSONObject: array, options: [.sortedKeys])
  }

  // MARK: - Parts

  private static func parts(of document: [UInt8], _ sizes: [UInt8]) -> [ArraySlice<UInt8>] {
    guard let longest = sizes.max(), longest > 0 else { return [document[...]] }
    var parts: [ArraySlice<UInt8>] = []
    var place = 0
    var index = 0
    while place < document.count {
      let end = min(document.count, place + Int(sizes[index % sizes.count]))
      if place < end { parts.append(document[place..<end]) }
      place = end
      index += 1
    }
    return parts
  }

  // MARK: - First inputs

  static var xmlSeeds: [[UInt8]] {
    let head: [UInt8] = [0x01, 3, 1, 7, 2]
    let texts = xmlTexts.map { head + Array($0.utf8) }
    let units = Array("\u{FEFF}<n b='é'>𝄞</n>".utf16)
    let big = units.flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] }
    let little = units.flatMap { [UInt8($0 & 255), UInt8($0 >> 8)] }
    return texts + [head + big, head + little]
  }

  private static let xmlTexts = [
    "<?xml version='1.0' encoding='utf-8'?><r><n b='c'>é&amp;<![CDATA[]]x]]><a/></n></r>",
    "<r><n>1</n><e c='d'>boom</e></r>", "<r><n>1</n>< & <e>boom</e>",
    "<n><!-- c --><?p i?>&#10;</n>",
    "<!DOCTYPE n [<!ENTITY x 'y'>]><n>&x;</n>", "<r><n b=\"<e>x</e>", "<n><n><n/></n>]]&gt;</n>",
    "<r><![CDATA[half <e>x</e>", "\u{FEFF}<n>\r\n</n>\n", "<r></n><f/><e/>",
    "<?xml version='1.0' encoding='ISO-8859-1'?><n/>", "<?xml version='1.0' encoding='x'?><n/>",
    "<!DOCTYPE n PUBLIC 'a' \"b>\"><n>&x;</n>", "<?xml version='1.0' encoding='utf8'?><n>é</n>",
    "<?xml version='1.0' encoding='KOI8-R'?><!DOCTYPE n><r><n>1</n>& <e/>",
  ]

  static var jsonSeeds: [[UInt8]] {
    jsonTexts.map { shape, text in [0, shape, 1, 7, 2, 90] + Array(text.utf8) }
  }

  private static let jsonTexts: [(UInt8, String)] = [
    (0, #"[1, "a\"]\\", {"b": [null, true]}, [], -2.5e3]"#),
    (1, #"{"b": {"a": [0]}, "\u0061": [1, {"c": "]"}], "d": 1}"#), (2, "1\n{\"a\": 1}\r\n\n[2]\n"),
    (3, #"{}[]"a""b"1 2 true{}"#), (4, #"[{"a": {"b": [1, 2]}}, {}, 7]"#), (0, "[[[[[[1]]]]]]"),
    (0, "\u{FEFF}[1]"), (1, #"{"a": null}"#),
    (0, "[" + String(repeating: #"{"key": "val\"ue", "list": [1, 2]}, "#, count: 6) + "0]"),
  ]

  static let xmlWords = [
    "<n>", "</n>", "<a b='", "'/>", "<e>", "</e>", "<e/>", "<!--", "-->", "<![CDATA[", "]]>", "<?",
    "?>", "&amp;", "&#60;", "<!DOCTYPE", "<?xml version='1.0' encoding='UTF-16'?>", " xml:a=\\\"",
  ]
  static let jsonWords = [
    "\\\"", "\\\\", "{", "}", "[", "]", ",", ":", "\\\"a\\\"", "\\\"b\\\"", "true", "null",
    "\\\\u0061",
  ]
}
