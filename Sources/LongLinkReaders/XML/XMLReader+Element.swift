// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkReaders

extension XMLReader {
  /// An element of a document, with all that is inside.
  ///
  /// It is kept as bytes in one allocation, which its children share. Its properties are read from
  /// them each time, in time proportional to the element's size.
  public struct Element: Sendable {
    /// The bytes of an element and its parents, as `cll_xml_take` writes them.
    private let bytes: [UInt8]
    /// The bytes of this element, from its first mark to its last.
    private let range: Range<Int>

    init(_ bytes: [UInt8]) {
      self.bytes = bytes
      range = 0..<bytes.count
    }

    private init(_ bytes: [UInt8], _ range: Range<Int>) {
      self.bytes = bytes
      self.range = range
    }

    /// The name as the document writes it, with its prefix.
    public var name: String { string(range.lowerBound + 1) }

    /// The attributes, in the document's order: the name as the document writes it, with its
    /// prefix, and the value, in which references have been replaced.
    public var attributes: [(name: String, value: String)] {
      var attributes: [(name: String, value: String)] = []
      var place = end(of: range.lowerBound + 1)
      while bytes[place] == Mark.attribute {
        let name = string(place + 1)
        place = end(of: place + 1)
        attributes.append((name, string(place + 1)))
        place = end(of: place + 1)
      }
      return attributes
    }

    /// The value of an attribute; nil if there is no attribute of this name.
    public subscript(name: String) -> String? {
      var place = end(of: range.lowerBound + 1)
      while bytes[place] == Mark.attribute {
        let value = end(of: place + 1)
        if bytes[(place + 1)..<value].elementsEqual(name.utf8) { return string(value + 1) }
        place = end(of: value + 1)
      }
      return nil
    }

    /// The text of the element and of all elements inside, joined in the document's order.
    public var text: String {
      if let plain = plainText { return String(decoding: bytes[plain], as: UTF8.self) }
      return String(decoding: textBytes, as: UTF8.self)
    }

    /// The text of the element and of all elements inside, as UTF-8.
    public var textBytes: [UInt8] {
      if let plain = plainText { return Array(bytes[plain]) }
      var text: [UInt8] = []
      var place = content
      while place < range.upperBound - 1 {
        // Text follows only the mark of content and that of an element's end.
        let mark = bytes[place]
        let next = end(of: place + 1)
        if mark == Mark.content || mark == Mark.end { text += bytes[(place + 1)..<next] }
        place = next
      }
      return text
    }

    /// The name and the attributes as in a tag; no attribute is added after `limit` bytes.
    func tagBytes(limit: Int) -> [UInt8] {
      let start = range.lowerBound + 1
      var place = end(of: start)
      var tag = Array(bytes[start..<place])
      while bytes[place] == Mark.attribute, tag.count < limit {
        let value = end(of: place + 1)
        tag += " ".utf8 + bytes[(place + 1)..<value] + "=\"".utf8
        place = end(of: value + 1)
        for byte in bytes[(value + 1)..<place].prefix(limit) {
          tag += byte == UInt8(ascii: "\"") ? Array("&quot;".utf8) : [byte]
        }
        tag += "\"".utf8
      }
      return tag
    }

    /// The child elements, in document order.
    public var children: [Element] {
      var children: [Element] = []
      var place = end(of: content + 1)
      while bytes[place] == Mark.element {
        let start = place
        var depth = 0
        repeat {
          if bytes[place] == Mark.element { depth += 1 }
          if bytes[place] == Mark.end { depth -= 1 }
          place = depth == 0 ? place + 1 : end(of: place + 1)
        } while depth > 0
        children.append(Element(bytes, start..<place))
        place = end(of: place)
      }
      return children
    }

    /// The first child element with this name; nil if there is none.
    public func child(_ name: String) -> Element? {
      children.first { $0.hasName(name) }
    }

    private func hasName(_ name: String) -> Bool {
      let start = range.lowerBound + 1
      return bytes[start..<end(of: start)].elementsEqual(name.utf8)
    }

    /// The index in `bytes` of the mark before the content.
    private var content: Int {
      var place = end(of: range.lowerBound + 1)
      while bytes[place] != Mark.content { place = end(of: place + 1) }
      return place
    }

    /// The indices of the content if it is only text; nil if it has child elements.
    private var plainText: Range<Int>? {
      let start = content + 1
      let end = end(of: start)
      return end == range.upperBound - 1 ? start..<end : nil
    }

    /// The end of the part that begins at `place`: the next mark, or the end of the bytes.
    private func end(of place: Int) -> Int {
      var place = place
      while place < bytes.count, bytes[place] > Mark.last { place += 1 }
      return place
    }

    private func string(_ place: Int) -> String {
      String(decoding: bytes[place..<end(of: place)], as: UTF8.self)
    }
  }

  private enum Mark {
    static let element = UInt8(CLL_XML_MARK_ELEMENT)
    static let end = UInt8(CLL_XML_MARK_END)
    static let attribute = UInt8(CLL_XML_MARK_ATTRIBUTE)
    static let content = UInt8(CLL_XML_MARK_CONTENT)
    /// The last mark: no byte of a name or text is below it.
    static let last = content
  }
}

extension XMLReader.Element: Hashable {
  /// Whether both have the same names, attributes, text and children, in the same order.
  public static func == (first: Self, second: Self) -> Bool {
    first.bytes[first.range] == second.bytes[second.range]
  }

  /// Hashes the whole content.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(bytes[range])
  }
}

extension XMLReader.Element: CustomStringConvertible {
  /// The name and the number of bytes; no content.
  public var description: String { "<\(name)>, \(range.count) bytes" }
}
