// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

extension FrameLayout: Codable {
  /// Reads the JSON form. Throws a `DecodingError` that names the key at fault.
  public init(from decoder: any Decoder) throws {
    let values = try StrictReader(
      decoder, "byteOrder", "both", "request", "response", "delimiter")
    let byteOrder: ByteOrder = values.has("byteOrder") ? try values.word("byteOrder") : .big
    let delimiter: Delimiter? = try values.optional("delimiter")
    let request: Shape
    let response: Shape
    let both: Shape? = try values.optional("both")
    if let both {
      guard !values.has("request"), !values.has("response") else {
        throw values.fault("both", "it cannot be combined with request or response")
      }
      (request, response) = (both, both)
    } else {
      request = try values.read("request")
      response = try values.read("response")
    }
    self = try StrictReader.checking(decoder) { () throws(FrameLayoutError) in
      do throws(FrameLayoutError) {
        return try FrameLayout(
          byteOrder: byteOrder, request: request, response: response, delimiter: delimiter)
      } catch {
        throw both == nil ? error : error.inBoth
      }
    }
  }

  /// Writes the JSON form.
  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingName.self)
    try values.encode(byteOrder.rawValue, forKey: CodingName("byteOrder"))
    if request == response {
      try values.encode(request, forKey: CodingName("both"))
    } else {
      try values.encode(request, forKey: CodingName("request"))
      try values.encode(response, forKey: CodingName("response"))
    }
    try values.encodeIfPresent(delimiter, forKey: CodingName("delimiter"))
  }
}

extension FrameLayout.Shape: Codable {
  /// Reads the JSON form. Throws a `DecodingError` that names the key at fault.
  public init(from decoder: any Decoder) throws {
    let values = try StrictReader(decoder, "header", "trailer")
    self.init(
      header: try values.read("header"), trailer: try values.read("trailer", or: []))
  }

  /// Writes the JSON form.
  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingName.self)
    try values.encode(header, forKey: CodingName("header"))
    if !trailer.isEmpty { try values.encode(trailer, forKey: CodingName("trailer")) }
  }
}

extension FrameLayout.Delimiter: Codable {
  /// Reads the JSON form. Throws a `DecodingError` that names the key at fault.
  public init(from decoder: any Decoder) throws {
    let values = try StrictReader(decoder, "bytes", "inside", "escape")
    let bytes: [UInt8] = try values.numbers("bytes")
    let inside = try values.read("inside", as: String.self)
    switch inside {
    case "lengthChecked": self.init(bytes, inside: .lengthChecked)
    case "refused": self.init(bytes, inside: .refused)
    case "escaped":
      self.init(bytes, inside: .escaped(try values.number("escape")))
      return
    default:
      throw values.fault("inside", "\"\(inside)\" is not one of lengthChecked, escaped, refused")
    }
    if values.has("escape") { throw values.fault("escape", "it needs inside to be escaped") }
  }

  /// Writes the JSON form.
  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingName.self)
    try values.encode(bytes.map(Int.init), forKey: CodingName("bytes"))
    switch inside {
    case .lengthChecked: try values.encode("lengthChecked", forKey: CodingName("inside"))
    case .refused: try values.encode("refused", forKey: CodingName("inside"))
    case .escaped(let escape):
      try values.encode("escaped", forKey: CodingName("inside"))
      try values.encode(escape, forKey: CodingName("escape"))
    }
  }
}

extension FrameLayout.Field: Codable {
  /// Reads the JSON form. Throws a `DecodingError` that names the key at fault.
  public init(from decoder: any Decoder) throws {
    let values = try StrictReader(
      decoder, "field", "width", "name", "byteOrder", "of", "algorithm", "over", "value")
    let word = try values.read("field", as: String.self)
    var keys: Set<String> = ["field", "width", "name", "byteOrder"]
    let meaning: Meaning
    switch word {
    case "type": meaning = .type
    case "serial": meaning = .serial
    case "code": meaning = .code
    case "token": meaning = .token
    case "repeatedType": meaning = .repeatedType
    case "length":
      keys.insert("of")
      meaning = .length(of: try values.word("of"))
    case "checksum":
      keys.formUnion(["algorithm", "over"])
      meaning = .checksum(try values.word("algorithm"), over: try values.read("over"))
    case "constant":
      keys.insert("value")
      meaning = .constant(try values.number("value"))
    case "version":
      keys.insert("value")
      meaning = .version(try values.number("value"))
    case "filler":
      keys.insert("value")
      meaning = .filler(values.has("value") ? try values.number("value") : 0)
    default:
      let known = Meaning.words.joined(separator: ", ")
      throw values.fault("field", "\"\(word)\" is not one of \(known)")
    }
    for key in ["of", "algorithm", "over", "value"] where values.has(key) && !keys.contains(key) {
      throw values.fault(key, "a \(word) has no such key")
    }
    self.init(
      meaning, width: try values.number("width"),
      byteOrder: values.has("byteOrder") ? try values.word("byteOrder") : nil,
      name: try values.optional("name"))
  }

  /// Writes the JSON form.
  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingName.self)
    try values.encode(meaning.word, forKey: CodingName("field"))
    try values.encode(width, forKey: CodingName("width"))
    if name != meaning.word { try values.encode(name, forKey: CodingName("name")) }
    try values.encodeIfPresent(byteOrder?.rawValue, forKey: CodingName("byteOrder"))
    switch meaning {
    case .type, .serial, .code, .token, .repeatedType: break
    case .length(let scope): try values.encode(scope.rawValue, forKey: CodingName("of"))
    case .checksum(let algorithm, let coverage):
      try values.encode(algorithm.rawValue, forKey: CodingName("algorithm"))
      try values.encode(coverage, forKey: CodingName("over"))
    case .constant(let value), .version(let value):
      try values.encode(value, forKey: CodingName("value"))
    case .filler(let value):
      if value != 0 { try values.encode(value, forKey: CodingName("value")) }
    }
  }
}

extension FrameLayout.Coverage: Codable {
  /// Reads the JSON form. Throws a `DecodingError` that names the key at fault.
  public init(from decoder: any Decoder) throws {
    guard let word = try? decoder.singleValueContainer().decode(String.self) else {
      let values = try StrictReader(decoder, "from", "to")
      self = .range(from: try values.read("from"), to: try values.read("to"))
      return
    }
    switch word {
    case "body": self = .body
    case "headerAndBody": self = .headerAndBody
    default:
      throw StrictReader.fault(
        decoder.codingPath, "\"\(word)\" is not one of body, headerAndBody, {\"from\", \"to\"}")
    }
  }

  /// Writes the JSON form.
  public func encode(to encoder: any Encoder) throws {
    switch self {
    case .body, .headerAndBody:
      var single = encoder.singleValueContainer()
      try single.encode(self == .body ? "body" : "headerAndBody")
    case .range(let from, let to):
      var values = encoder.container(keyedBy: CodingName.self)
      try values.encode(from, forKey: CodingName("from"))
      try values.encode(to, forKey: CodingName("to"))
    }
  }
}
