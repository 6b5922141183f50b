// SPDX-License-Identifier: Apache-2.0

import LongLinkDialects

extension FrameLayout {
  /// A text diagram of the frames, 32 bits per row, with the offset of each row in bytes.
  ///
  /// Both directions are drawn if they differ. Offsets after the body count from its end.
  var diagram: String {
    guard request != response else { return diagram(of: request) }
    return "From the client:\n\n" + diagram(of: request) + "\nFrom the server:\n\n"
      + diagram(of: response)
  }

  private func diagram(of shape: Shape) -> String {
    var drawing = Drawing()
    let marks = delimiter.map { [Drawing.Part("delimiter", $0.bytes.count)] } ?? []
    drawing.add(shape.header.map { Drawing.Part($0.label, $0.width) } + marks, from: "")
    let escaped =
      switch delimiter?.inside {
      case .escaped: " (escaped)"
      case .lengthChecked, .refused, nil: ""
      }
    let lead = shape.header.reduce(delimiter?.bytes.count ?? 0) { $0 + $1.width }
    drawing.addLong("body\(escaped)", "\(lead)")
    drawing.add(shape.trailer.map { Drawing.Part($0.label, $0.width) } + marks, from: "+")
    return drawing.text
  }
}

extension FrameLayout.Field {
  fileprivate var label: String {
    switch meaning {
    case .constant(let value): "\(name) 0x\(String(value, radix: 16, uppercase: true))"
    case .version(let value): "\(name) \(value)"
    case .type, .serial, .code, .length, .checksum, .token, .filler, .repeatedType: name
    }
  }
}

/// A drawing of boxes in rows of four bytes.
private struct Drawing {
  struct Part {
    let label: String
    let width: Int

    init(_ label: String, _ width: Int) {
      self.label = label
      self.width = width
    }
  }

  /// The widest field that is drawn to scale. A wider one is drawn as a single row.
  private static let widest = 8
  private static let ruler = """
     0                   1                   2                   3
     0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1

    """

  private var lines = Drawing.ruler
  /// The part of each byte in the last drawn row.
  private var above: [Int?] = [nil, nil, nil, nil]
  private var parts = 0

  var text: String { lines + line(below: [nil, nil, nil, nil]) }

  /// Draws consecutive parts, beginning with a new row.
  mutating func add(_ fields: [Part], from prefix: String) {
    var (row, labels, offset) = ([Part](), [Int](), 0)
    for field in fields {
      if field.width > Self.widest {
        draw(row, labels, "\(prefix)\(offset - row.reduce(0) { $0 + $1.width })")
        (row, labels) = ([], [])
        addLong("\(field.label), \(field.width) bytes", "\(prefix)\(offset)")
        offset += field.width
      } else {
        row.append(field)
        labels.append(parts)
        parts += 1
        offset += field.width
      }
    }
    draw(row, labels, "\(prefix)\(offset - row.reduce(0) { $0 + $1.width })")
  }

  mutating func addLong(_ label: String, _ offset: String) {
    let part = parts
    parts += 1
    lines += line(below: [part, part, part, part])
    lines += "/" + Self.centred(label, 63) + "/  \(offset)\n"
    above = [part, part, part, part]
  }

  private mutating func draw(_ row: [Part], _ names: [Int], _ start: String) {
    let prefix = start.hasPrefix("+") ? "+" : ""
    let first = Int(start.drop { $0 == "+" }) ?? 0
    let bytes = zip(row, names).flatMap { Array(repeating: ($0, $1), count: $0.width) }
    let rows = stride(from: 0, to: bytes.count, by: 4).map { bytes[$0..<min($0 + 4, bytes.count)] }
    // A part's label is in the first of its widest rows.
    var widest: [Int: (row: Int, width: Int)] = [:]
    for (index, row) in rows.enumerated() {
      for name in Set(row.map(\.1)) {
        let width = row.count { $0.1 == name }
        if width > widest[name]?.width ?? 0 { widest[name] = (index, width) }
      }
    }
    for (index, row) in rows.enumerated() {
      let cells: [Int?] = row.map(\.1) + Array(repeating: nil, count: 4 - row.count)
      lines += line(below: cells)
      var (text, place) = ("|", row.startIndex)
      while place < row.endIndex {
        let (part, name) = row[place]
        let width = row[place...].prefix { $0.1 == name }.count
        let label = widest[name]?.row == index ? part.label : ""
        text += Self.centred(label, 16 * width - 1) + "|"
        place += width
      }
      let padding = String(repeating: " ", count: 65 - text.count)
      lines += "\(text)\(padding)  \(prefix)\(first + 4 * index)\n"
      above = cells
    }
  }

  /// Returns the line between the last row and a row with these parts. It is open within a part.
  private func line(below: [Int?]) -> String {
    var characters = Array(repeating: Character(" "), count: 65)
    for byte in 0..<4 where above[byte] != below[byte] {
      for place in 16 * byte...16 * byte + 16 {
        characters[place] = place.isMultiple(of: 2) ? "+" : "-"
      }
    }
    for (edge, byte) in [(0, 0), (64, 3)] where above[byte] != nil || below[byte] != nil {
      characters[edge] = "+"
    }
    while characters.last == " " { characters.removeLast() }
    return characters.isEmpty ? "" : String(characters) + "\n"
  }

  private static func centred(_ label: String, _ width: Int) -> String {
    let text = label.prefix(width)
    let left = (width - text.count) / 2
    return String(repeating: " ", count: left) + text
      + String(repeating: " ", count: width - text.count - left)
  }
}
