// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

extension FrameDialect.Pushes: Codable {
  /// Reads the JSON form. Throws a `DecodingError` that names the key at fault.
  public init(from decoder: any Decoder) throws {
    let values = try StrictReader(decoder, "fromServer", "fromClient", "serial")
    func ranges(_ key: String) throws -> [ClosedRange<UInt32>] {
      try values.optional(key, as: [LooseRange].self)?.map(\.range) ?? []
    }
    self.init(
      fromServer: try ranges("fromServer"), fromClient: try ranges("fromClient"),
      serial: values.has("serial") ? try values.number("serial") : 0)
  }

  /// Writes the JSON form.
  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingName.self)
    try values.encode(fromServer.map(LooseRange.init), forKey: CodingName("fromServer"))
    try values.encode(fromClient.map(LooseRange.init), forKey: CodingName("fromClient"))
    try values.encode(serial, forKey: CodingName("serial"))
  }
}

extension FrameDialect.Cancel: Codable {
  /// Reads the JSON form. Throws a `DecodingError` that names the key at fault.
  public init(from decoder: any Decoder) throws {
    let values = try StrictReader(decoder, "type", "target")
    self.init(type: try values.number("type"), target: try values.word("target"))
  }

  /// Writes the JSON form.
  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingName.self)
    try values.encode(type, forKey: CodingName("type"))
    try values.encode(target.rawValue, forKey: CodingName("target"))
  }
}

extension FrameDialect.Codes: Codable {
  /// Reads the JSON form. Throws a `DecodingError` that names the key at fault.
  public init(from decoder: any Decoder) throws {
    let values = try StrictReader(decoder, "success", "failure", "errors")
    self.init(
      success: try values.numbers("success"), failure: try values.number("failure"),
      errors: try values.read("errors", or: []))
  }

  /// Writes the JSON form.
  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingName.self)
    try values.encode(success, forKey: CodingName("success"))
    try values.encode(failure, forKey: CodingName("failure"))
    try values.encode(errors, forKey: CodingName("errors"))
  }
}

extension DialectErrorCode: Codable {
  /// Reads the JSON form. Throws a `DecodingError` that names the key at fault.
  public init(from decoder: any Decoder) throws {
    let values = try StrictReader(decoder, "code", "name", "text", "native")
    var native: ResponseCode?
    if values.has("native") {
      let number: UInt32 = try values.number("native")
      native = ResponseCode(rawValue: number)
      guard native != nil else {
        throw values.fault("native", "\(number) exceeds \(Wire.codeMask)")
      }
    }
    self.init(
      try values.number("code"), try values.read("name"), try values.read("text", or: ""),
      native: native)
  }

  /// Writes the JSON form.
  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingName.self)
    try values.encode(code, forKey: CodingName("code"))
    try values.encode(name, forKey: CodingName("name"))
    if !text.isEmpty { try values.encode(text, forKey: CodingName("text")) }
    try values.encodeIfPresent(native?.rawValue, forKey: CodingName("native"))
  }
}
