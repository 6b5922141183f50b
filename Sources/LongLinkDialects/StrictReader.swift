// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// A key of the JSON form.
struct CodingName: CodingKey {
  let stringValue: String
  var intValue: Int? { nil }

  init(stringValue: String) { self.stringValue = stringValue }
  init(_ name: String) { stringValue = name }
  init?(intValue: Int) { nil }
}

/// A reader of a JSON object that rejects unknown keys and reports where an error is.
///
/// It throws only `DecodingError`s, whose description begins with the path of the wrong key and
/// whose underlying error is a ``FrameLayoutError``.
struct StrictReader {
  private let values: KeyedDecodingContainer<CodingName>

  init(_ decoder: any Decoder, _ keys: String...) throws {
    do {
      values = try decoder.container(keyedBy: CodingName.self)
    } catch let error as DecodingError {
      throw StrictReader.readable(error)
    }
    let unknown = values.allKeys.map(\.stringValue).filter { !keys.contains($0) }
    guard let first = unknown.min() else { return }
    let known = keys.joined(separator: ", ")
    throw fault(first, "unknown key; the keys are \(known)")
  }

  func has(_ key: String) -> Bool { values.contains(CodingName(key)) }

  func read<Value: Decodable>(_ key: String, as type: Value.Type = Value.self) throws -> Value {
    do {
      return try values.decode(Value.self, forKey: CodingName(key))
    } catch let error as DecodingError {
      throw StrictReader.readable(error)
    }
  }

  func read<Value: Decodable>(_ key: String, or other: Value) throws -> Value {
    has(key) ? try read(key) : other
  }

  func optional<Value: Decodable>(_ key: String, as type: Value.Type = Value.self) throws -> Value?
  {
    has(key) ? try read(key) : nil
  }

  func number<Value: FixedWidthInteger & Decodable>(
    _ key: String, as type: Value.Type = Value.self
  ) throws -> Value {
    try read(key, as: LooseNumber<Value>.self).value
  }

  func numbers<Value: FixedWidthInteger & Decodable>(_ key: String) throws -> [Value] {
    try read(key, as: [LooseNumber<Value>].self).map(\.value)
  }

  /// Reads a case of an enumeration.
  func word<Word: CaseIterable & RawRepresentable>(_ key: String) throws -> Word
  where Word.RawValue == String {
    let text = try read(key, as: String.self)
    guard let word = Word(rawValue: text) else {
      let known = Word.allCases.map(\.rawValue).joined(separator: ", ")
      throw fault(key, "\"\(text)\" is not one of \(known)")
    }
    return word
  }

  func fault(_ key: String, _ reason: String) -> DecodingError {
    StrictReader.fault(values.codingPath + [CodingName(key)], reason)
  }

  /// Runs `make`, and adds the path to the errors of its checks.
  static func checking<Value>(
    _ decoder: any Decoder, _ make: () throws(FrameLayoutError) -> Value
  ) throws -> Value {
    do throws(FrameLayoutError) {
      return try make()
    } catch {
      let path = StrictReader.path(decoder.codingPath)
      let field = path.isEmpty ? error.field : "\(path).\(error.field)"
      throw StrictReader.fault(decoder.codingPath, FrameLayoutError(field, error.reason))
    }
  }

  static func fault(_ path: [any CodingKey], _ reason: String) -> DecodingError {
    fault(path, FrameLayoutError(self.path(path), reason))
  }

  private static func fault(
    _ path: [any CodingKey], _ error: FrameLayoutError
  ) -> DecodingError {
    DecodingError.dataCorrupted(
      DecodingError.Context(
        codingPath: path, debugDescription: error.description, underlyingError: error))
  }

  /// Returns the error with a readable description that begins with the path.
  static func readable(_ error: DecodingError) -> DecodingError {
    switch error {
    case .dataCorrupted(let context):
      if context.underlyingError is FrameLayoutError { return error }
      return fault(context.codingPath, context.debugDescription)
    case .keyNotFound(let key, let context):
      return fault(context.codingPath + [key], "it is missing")
    case .valueNotFound(_, let context):
      return fault(context.codingPath, "it is null")
    case .typeMismatch(_, let context):
      return fault(context.codingPath, "it has the wrong type")
    @unknown default:
      return error
    }
  }

  private static func path(_ keys: [any CodingKey]) -> String {
    keys.reduce(into: "") { path, key in
      if let index = key.intValue {
        path += "[\(index)]"
      } else {
        path += path.isEmpty ? key.stringValue : ".\(key.stringValue)"
      }
    }
  }
}

/// An integer, as a number or as a hexadecimal string with the prefix `0x`.
struct LooseNumber<Value: FixedWidthInteger & Decodable>: Decodable {
  let value: Value

  init(from decoder: any Decoder) throws {
    let single = try decoder.singleValueContainer()
    if let number = try? single.decode(Value.self) {
      value = number
    } else if let text = try? single.decode(String.self), text.hasPrefix("0x"),
      let number = Value(text.dropFirst(2), radix: 16)
    {
      value = number
    } else {
      throw StrictReader.fault(
        decoder.codingPath,
        "it must be a number from \(Value.min) to \(Value.max), or a string like \"0x401\"")
    }
  }
}

/// A range, as its first and last number or as a single number.
struct LooseRange: Codable {
  let range: ClosedRange<UInt32>

  init(_ range: ClosedRange<UInt32>) { self.range = range }

  init(from decoder: any Decoder) throws {
    if let number = try? LooseNumber<UInt32>(from: decoder).value {
      range = number...number
      return
    }
    let single = try decoder.singleValueContainer()
    let bounds = try? single.decode([LooseNumber<UInt32>].self).map(\.value)
    guard let bounds, bounds.count == 2, bounds[0] <= bounds[1] else {
      throw StrictReader.fault(
        decoder.codingPath, "it must be a number, or the first and last number in order")
    }
    range = bounds[0]...bounds[1]
  }

  func encode(to encoder: any Encoder) throws {
    var single = encoder.singleValueContainer()
    if range.count == 1 {
      try single.encode(range.lowerBound)
    } else {
      try single.encode([range.lowerBound, range.upperBound])
    }
  }
}
