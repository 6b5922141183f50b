// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

extension FrameLayout {
  /// The longest header or trailer, in bytes.
  static let longestHeader = 1024

  func validate() throws(FrameLayoutError) {
    if let delimiter { try validate(delimiter) }
    for role in [Role.client, .server] {
      let name = role == .client ? "request" : "response"
      do throws(FrameLayoutError) {
        try validate(shape(from: role), role)
      } catch {
        throw error.inside(name)
      }
    }
  }

  private func validate(_ delimiter: Delimiter) throws(FrameLayoutError) {
    guard (1...8).contains(delimiter.bytes.count) else {
      throw FrameLayoutError(
        "delimiter.bytes", "a delimiter has 1 to 8 bytes; this has \(delimiter.bytes.count)")
    }
    if case .escaped(let byte) = delimiter.inside, delimiter.bytes.contains(byte) {
      throw FrameLayoutError(
        "delimiter.escape", "the escape byte \(byte) is part of the delimiter")
    }
  }

  private func validate(_ shape: Shape, _ role: Role) throws(FrameLayoutError) {
    for (part, fields) in [("header", shape.header), ("trailer", shape.trailer)] {
      for (index, field) in fields.enumerated() {
        do throws(FrameLayoutError) {
          try validate(field, isTrailer: part == "trailer")
        } catch {
          throw FrameLayoutError("\(part)[\(index)]", "(\(field.name)) \(error.reason)")
        }
      }
    }
    guard shape.headerLength <= Self.longestHeader, shape.trailerLength <= Self.longestHeader
    else {
      throw FrameLayoutError("header", "it is longer than \(Self.longestHeader) bytes")
    }
    try validateCounts(shape, role)
    try validateNames(shape)
    try validateFraming(shape)
    try validateRepeatedType(shape)
    try validateCoverage(shape)
  }

  private func validate(_ field: Field, isTrailer: Bool) throws(FrameLayoutError) {
    guard field.meaning.allows(width: field.width) else {
      let allowed =
        switch field.meaning {
        case .token, .filler: "1 to 255"
        case .checksum: "4 or 8"
        default: "1, 2, 4 or 8"
        }
      throw FrameLayoutError("", "it is \(field.width) bytes wide, but must be \(allowed)")
    }
    if isTrailer, field.meaning.belongsInHeader {
      throw FrameLayoutError("", "it must be in the header")
    }
    switch field.meaning {
    case .constant(let value), .version(let value):
      guard field.width == 8 || value >> UInt64(8 * field.width) == 0 else {
        throw FrameLayoutError("", "\(value) does not fit into \(field.width) bytes")
      }
    case .type, .serial, .code, .length, .checksum, .token, .filler, .repeatedType:
      break
    }
    guard FrameLayout.isName(field.name), field.name != "body" else {
      throw FrameLayoutError("", "\(FrameLayout.nameRule), and must not be \"body\"")
    }
  }

  private func validateCounts(_ shape: Shape, _ role: Role) throws(FrameLayoutError) {
    var seen: [String: String] = [:]
    for (part, fields) in [("header", shape.header), ("trailer", shape.trailer)] {
      for (index, field) in fields.enumerated() where field.meaning.isUnique {
        let path = "\(part)[\(index)]"
        if let first = seen.updateValue(path, forKey: field.meaning.word) {
          throw FrameLayoutError(
            path, "(\(field.name)) a second \(field.meaning.word); the first is \(first)")
        }
      }
    }
    if seen["serial"] == nil {
      throw FrameLayoutError("header", "it has no serial to match responses with requests")
    }
    if seen["type"] == nil, role == .client {
      throw FrameLayoutError("header", "it has no type, which requests need")
    }
  }

  private func validateNames(_ shape: Shape) throws(FrameLayoutError) {
    var seen: Set<String> = []
    for (part, fields) in [("header", shape.header), ("trailer", shape.trailer)] {
      for (index, field) in fields.enumerated() {
        if case .filler = field.meaning { continue }
        guard seen.insert(field.name).inserted else {
          throw FrameLayoutError(
            "\(part)[\(index)]", "(\(field.name)) another field has this name")
        }
      }
    }
  }

  private func validateFraming(_ shape: Shape) throws(FrameLayoutError) {
    var scope: LengthScope?
    for field in shape.header {
      if case .length(let found) = field.meaning { scope = found }
    }
    guard let delimiter else {
      guard scope != nil else {
        throw FrameLayoutError("header", "without a delimiter, it needs a length to end frames")
      }
      return
    }
    guard shape.trailer.isEmpty else {
      throw FrameLayoutError("trailer", "delimited frames end with the delimiter after the body")
    }
    switch delimiter.inside {
    case .lengthChecked:
      guard scope != nil else {
        throw FrameLayoutError("header", "it needs a length, because bodies can contain delimiters")
      }
    case .escaped:
      guard scope == nil || scope == .body else {
        throw FrameLayoutError(
          "header", "if bodies are escaped, the length must count only the body")
      }
    case .refused:
      break
    }
  }

  private func validateRepeatedType(_ shape: Shape) throws(FrameLayoutError) {
    guard let again = shape.fields.firstIndex(where: { $0.meaning == .repeatedType }) else {
      return
    }
    guard let first = shape.fields.firstIndex(where: { $0.meaning == .type }), first < again,
      shape.fields[first].width == shape.fields[again].width
    else {
      let inHeader = again < shape.header.count
      throw FrameLayoutError(
        inHeader ? "header[\(again)]" : "trailer[\(again - shape.header.count)]",
        "(\(shape.fields[again].name)) no type of the same width precedes it")
    }
  }

  private func validateCoverage(_ shape: Shape) throws(FrameLayoutError) {
    for (index, field) in shape.fields.enumerated() {
      guard case .checksum(_, over: .range(let from, let to)) = field.meaning else { continue }
      let inHeader = index < shape.header.count
      let path = inHeader ? "header[\(index)]" : "trailer[\(index - shape.header.count)]"
      let names = shape.header.map(\.name) + ["body"] + shape.trailer.map(\.name)
      for name in [from, to] where names.count(where: { $0 == name }) != 1 {
        let found = names.contains(name) ? "several parts are" : "no part is"
        throw FrameLayoutError(path, "(\(field.name)) \(found) named \"\(name)\"")
      }
      // The loop above ensures that both names exist.
      let range = (names.firstIndex(of: from)!, names.firstIndex(of: to)!)
      guard range.0 <= range.1 else {
        throw FrameLayoutError(path, "(\(field.name)) \"\(from)\" comes after \"\(to)\"")
      }
      let own = inHeader ? index : index + 1
      guard !(range.0...range.1).contains(own) else {
        throw FrameLayoutError(path, "(\(field.name)) a checksum cannot cover itself")
      }
    }
  }
}

extension FrameLayout {
  static let nameRule = "a name has 1 to 32 ASCII letters, digits, - and _"

  static func isName(_ text: String) -> Bool {
    let letters = text.utf8
    let isPlain = letters.allSatisfy { letter in
      switch letter {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
        true
      default: false
      }
    }
    return isPlain && (1...32).contains(letters.count)
  }
}
