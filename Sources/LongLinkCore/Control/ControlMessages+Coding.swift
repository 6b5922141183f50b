// SPDX-License-Identifier: Apache-2.0

/// A message about the connection itself, as `Protocols/control.proto` describes it.
///
/// The core encodes and decodes these few messages by hand, so that it depends on no other module.
package protocol ControlBody: BodyEncodable, BodyDecodable {
  /// The message's fields, for tools that explain a capture.
  static var fields: [ControlField] { get }
  /// Writes all fields that do not have their default values.
  func write(to writer: inout ProtobufWriter) throws(BodyError)
  /// Reads the fields up to the end of the message.
  static func read(from reader: inout ProtobufReader) throws(BodyError) -> Self
}

extension ControlBody {
  package static var isMeasuredByEncoding: Bool { true }

  package var encodedByteCount: Int {
    get throws(BodyError) { try encodedBytes().count }
  }

  package func encode(into output: inout OutputRawSpan) throws(BodyError) {
    try encodedBytes().encode(into: &output)
  }

  /// Throws `.interiorNUL` if a text contains U+0000.
  package func encodedBytes() throws(BodyError) -> [UInt8] {
    var writer = ProtobufWriter()
    try write(to: &writer)
    return writer.bytes
  }

  package init(decoding body: RawSpan) throws(BodyError) {
    // The body is valid during this call, and the reader does not outlive the call.
    let bytes = unsafe body.withUnsafeBytes { unsafe $0.assumingMemoryBound(to: UInt8.self) }
    var reader = unsafe ProtobufReader(control: bytes)
    self = try Self.read(from: &reader)
  }
}

extension Hello: ControlBody {
  package func write(to writer: inout ProtobufWriter) throws(BodyError) {
    writer.uint32(1, version)
    writer.uint64(2, features)
    writer.uint32(3, maxBody)
    writer.uint32(4, maxInFlight)
    writer.uint32(5, heartbeatInterval)
    writer.uint32(6, heartbeatTimeout)
    writer.bytes(7, credential)
    try writer.string(8, name)
    writer.uint32(11, streamCredit)
    if let clientID { writer.bytes(12, clientID.bytes) }
  }

  package static func read(from reader: inout ProtobufReader) throws(BodyError) -> Hello {
    var value = Hello()
    while let field = try reader.next() {
      switch field {
      case 1: value.version = try reader.uint32()
      case 2: value.features = try reader.uint64()
      case 3: value.maxBody = try reader.uint32()
      case 4: value.maxInFlight = try reader.uint32()
      case 5: value.heartbeatInterval = try reader.uint32()
      case 6: value.heartbeatTimeout = try reader.uint32()
      case 7: value.credential = try reader.bytes()
      case 8: value.name = try reader.string()
      case 11: value.streamCredit = try reader.uint32()
      case 12:
        let bytes = try reader.bytes()
        value.clientID = ClientID(bytes)
        if value.clientID == nil, !bytes.isEmpty {
          throw BodyError(.malformed, detail: "a client_id of \(bytes.count) bytes")
        }
      default: try reader.skip()
      }
    }
    return value
  }
}

extension Welcome: ControlBody {
  package func write(to writer: inout ProtobufWriter) throws(BodyError) {
    writer.uint32(1, version)
    writer.uint64(2, features)
    writer.uint32(3, maxBody)
    writer.uint32(4, maxInFlight)
    writer.uint32(5, heartbeatInterval)
    writer.uint32(6, heartbeatTimeout)
    try writer.string(9, name)
    writer.uint32(10, streamCredit)
    writer.uint32(11, credentialExpires)
    if let keySpace { writer.halves(12, keySpace.high, keySpace.low) }
    writer.uint32(13, keyRetention)
    writer.uint64(14, keyTime)
  }

  package static func read(from reader: inout ProtobufReader) throws(BodyError) -> Welcome {
    var value = Welcome()
    while let field = try reader.next() {
      switch field {
      case 1: value.version = try reader.uint32()
      case 2: value.features = try reader.uint64()
      case 3: value.maxBody = try reader.uint32()
      case 4: value.maxInFlight = try reader.uint32()
      case 5: value.heartbeatInterval = try reader.uint32()
      case 6: value.heartbeatTimeout = try reader.uint32()
      case 9: value.name = try reader.string()
      case 10: value.streamCredit = try reader.uint32()
      case 11: value.credentialExpires = try reader.uint32()
      case 12: value.keySpace = try reader.keySpace()
      case 13: value.keyRetention = try reader.uint32()
      case 14: value.keyTime = try reader.uint64()
      default: try reader.skip()
      }
    }
    return value
  }
}

extension GoAway: ControlBody {
  package func write(to writer: inout ProtobufWriter) throws(BodyError) {
    writer.uint32(1, code)
    try writer.string(2, reason)
    writer.uint64(3, requestsAccepted)
    writer.uint32(4, spread)
    writer.uint32(5, retryAfter)
    for alternative in alternatives { try writer.element(6, alternative) }
  }

  package static func read(from reader: inout ProtobufReader) throws(BodyError) -> GoAway {
    var value = GoAway()
    while let field = try reader.next() {
      switch field {
      case 1: value.code = try reader.uint32()
      case 2: value.reason = try reader.string()
      case 3: value.requestsAccepted = try reader.uint64()
      case 4: value.spread = try reader.uint32()
      case 5: value.retryAfter = try reader.uint32()
      case 6: value.alternatives.append(try reader.string())
      default: try reader.skip()
      }
    }
    return value
  }
}

extension Metadata: ControlBody {
  package func write(to writer: inout ProtobufWriter) throws(BodyError) {
    if let remaining { writer.present(1, UInt64(remaining)) }
    writer.uint32(2, priority)
    writer.bytes(3, idempotencyKey)
    for entry in canonicalEntries {
      try writer.message(4) { (writer) throws(BodyError) in
        try writer.string(1, entry.key)
        try writer.string(2, entry.value)
      }
    }
    writer.uint32(5, retryAfter)
    if let credit { writer.present(6, UInt64(credit)) }
    writer.bool(7, items)
    writer.bool(8, interrupted)
    if let keySpace { writer.halves(9, keySpace.high, keySpace.low) }
    writer.uint64(10, keyTime)
    writer.bool(11, replayed)
  }

  package static func read(from reader: inout ProtobufReader) throws(BodyError) -> Metadata {
    var value = Metadata()
    while let field = try reader.next() {
      switch field {
      case 1: value.remaining = try reader.uint32()
      case 2: value.priority = try reader.uint32()
      case 3: value.idempotencyKey = try reader.bytes()
      case 4: value.entries.append(try reader.message(Entry.read))
      case 5: value.retryAfter = try reader.uint32()
      case 6: value.credit = try reader.uint32()
      case 7: value.items = try reader.bool()
      case 8: value.interrupted = try reader.bool()
      case 9: value.keySpace = try reader.keySpace()
      case 10: value.keyTime = try reader.uint64()
      case 11: value.replayed = try reader.bool()
      default: try reader.skip()
      }
    }
    return value
  }
}

extension Metadata.Entry {
  /// On the wire, each map element is a message.
  fileprivate static func read(
    from reader: inout ProtobufReader
  ) throws(BodyError) -> Metadata.Entry {
    var value = Metadata.Entry(key: "", value: "")
    while let field = try reader.next() {
      switch field {
      case 1: value.key = try reader.string()
      case 2: value.value = try reader.string()
      default: try reader.skip()
      }
    }
    return value
  }
}
