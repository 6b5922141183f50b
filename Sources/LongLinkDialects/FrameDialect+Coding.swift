// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

extension FrameDialect: Codable {
  /// Reads the JSON form. Throws a `DecodingError` that names the key at fault.
  public init(from decoder: any Decoder) throws {
    let values = try StrictReader(
      decoder, "name", "layout", "serials", "responseType", "heartbeat", "pushes", "cancel",
      "codes", "unknownSerial", "maximumBody")
    let name: String = try values.read("name")
    let layout: FrameLayout = try values.read("layout")
    let serials: Serials = try values.read("serials")
    let responseType: ResponseType = try values.read("responseType", or: .echo)
    let heartbeat: HeartbeatFrames = try values.read("heartbeat", or: HeartbeatFrames())
    let pushes: Pushes = try values.read("pushes", or: Pushes())
    let cancel: Cancel? = try values.optional("cancel")
    let codes: Codes? = try values.optional("codes")
    let unknownSerial: UnknownSerial =
      values.has("unknownSerial") ? try values.word("unknownSerial") : .drop
    let maximumBody: Int = try values.number("maximumBody")
    self = try StrictReader.checking(decoder) { () throws(FrameLayoutError) in
      try FrameDialect(
        name: name, layout: layout, serials: serials, responseType: responseType,
        heartbeat: heartbeat, pushes: pushes, cancel: cancel, codes: codes,
        unknownSerial: unknownSerial, maximumBody: maximumBody)
    }
  }

  /// Writes the JSON form.
  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingName.self)
    try values.encode(name, forKey: CodingName("name"))
    try values.encode(layout, forKey: CodingName("layout"))
    try values.encode(serials, forKey: CodingName("serials"))
    try values.encode(responseType, forKey: CodingName("responseType"))
    try values.encode(heartbeat, forKey: CodingName("heartbeat"))
    try values.encode(pushes, forKey: CodingName("pushes"))
    try values.encodeIfPresent(cancel, forKey: CodingName("cancel"))
    try values.encodeIfPresent(codes, forKey: CodingName("codes"))
    try values.encode(unknownSerial.rawValue, forKey: CodingName("unknownSerial"))
    try values.encode(maximumBody, forKey: CodingName("maximumBody"))
  }
}

extension FrameDialect.Serials: Codable {
  /// Reads the JSON form. Throws a `DecodingError` that names the key at fault.
  public init(from decoder: any Decoder) throws {
    let values = try StrictReader(decoder, "client", "server")
    self.init(
      client: try values.read("client", as: LooseRange.self).range,
      server: try values.optional("server", as: LooseRange.self)?.range)
  }

  /// Writes the JSON form.
  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingName.self)
    try values.encode(LooseRange(client), forKey: CodingName("client"))
    try values.encodeIfPresent(server.map(LooseRange.init), forKey: CodingName("server"))
  }
}

extension FrameDialect.ResponseType: Codable {
  /// Reads the JSON form. Throws a `DecodingError` that names the key at fault.
  public init(from decoder: any Decoder) throws {
    if let word = try? decoder.singleValueContainer().decode(String.self) {
      switch word {
      case "echo": self = .echo
      case "absent": self = .absent
      default:
        throw StrictReader.fault(
          decoder.codingPath, "\"\(word)\" is not one of echo, absent, {\"offset\"}, {\"fixed\"}")
      }
      return
    }
    let values = try StrictReader(decoder, "offset", "fixed")
    guard values.has("offset") != values.has("fixed") else {
      throw StrictReader.fault(decoder.codingPath, "it must have either offset or fixed")
    }
    self =
      values.has("fixed")
      ? .fixed(try values.number("fixed")) : .offset(try values.number("offset"))
  }

  /// Writes the JSON form.
  public func encode(to encoder: any Encoder) throws {
    switch self {
    case .echo, .absent:
      var single = encoder.singleValueContainer()
      try single.encode(self == .echo ? "echo" : "absent")
    case .offset(let number):
      var values = encoder.container(keyedBy: CodingName.self)
      try values.encode(number, forKey: CodingName("offset"))
    case .fixed(let number):
      var values = encoder.container(keyedBy: CodingName.self)
      try values.encode(number, forKey: CodingName("fixed"))
    }
  }
}

extension FrameDialect.HeartbeatFrames: Codable {
  /// Reads the JSON form. Throws a `DecodingError` that names the key at fault.
  public init(from decoder: any Decoder) throws {
    let values = try StrictReader(decoder, "client", "server", "interval", "timeout")
    let usual = FrameDialect.HeartbeatFrames()
    func duration(_ key: String, _ other: Duration) throws -> Duration {
      values.has(key) ? .milliseconds(try values.number(key, as: UInt32.self)) : other
    }
    self.init(
      client: try values.optional("client"), server: try values.optional("server"),
      interval: try duration("interval", usual.interval),
      timeout: try duration("timeout", usual.timeout))
  }

  /// Writes the JSON form.
  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingName.self)
    try values.encodeIfPresent(client, forKey: CodingName("client"))
    try values.encodeIfPresent(server, forKey: CodingName("server"))
    try values.encode(interval.wholeMilliseconds, forKey: CodingName("interval"))
    try values.encode(timeout.wholeMilliseconds, forKey: CodingName("timeout"))
  }
}

extension Duration {
  /// The duration in milliseconds, rounded towards zero.
  var wholeMilliseconds: Int64 {
    components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
  }
}

extension FrameDialect.Ping: Codable {
  /// Reads the JSON form. Throws a `DecodingError` that names the key at fault.
  public init(from decoder: any Decoder) throws {
    let values = try StrictReader(decoder, "type", "serials", "answer")
    let type: UInt32 = try values.number("type")
    var answer: UInt32? = type
    if values.has("answer") {
      let word = try? values.read("answer", as: String.self)
      answer = word == "none" ? nil : word == "echo" ? type : try values.number("answer")
    }
    self.init(
      type: type, serials: try values.read("serials", as: LooseRange.self).range, answer: answer)
  }

  /// Writes the JSON form.
  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingName.self)
    try values.encode(type, forKey: CodingName("type"))
    try values.encode(LooseRange(serials), forKey: CodingName("serials"))
    if let answer, answer != type {
      try values.encode(answer, forKey: CodingName("answer"))
    } else {
      try values.encode(answer == nil ? "none" : "echo", forKey: CodingName("answer"))
    }
  }
}
