// SPDX-License-Identifier: Apache-2.0

import CLongLinkControl
// Each generated header brings libprotobuf-c's, and the compiler takes them to be of this one.
import CLongLinkDemo
import CProtobufC
import LongLinkCore
import Testing

/// The core codes its control messages by itself: libprotobuf-c has to agree, byte by byte.
@Suite struct ControlAgreementTests {
  @Test func `the core writes the same bytes as libprotobuf-c`() throws {
    var generator = SeededGenerator(seed: 3)
    for _ in 0..<2_000 {
      try unsafe expectAgreement(
        Hello.random(using: &generator), longlink__control__hello__descriptor)
      try unsafe expectAgreement(
        Welcome.random(using: &generator), longlink__control__welcome__descriptor)
      try unsafe expectAgreement(
        GoAway.random(using: &generator), longlink__control__go_away__descriptor)
      try unsafe expectAgreement(
        Metadata.random(using: &generator), longlink__control__metadata__descriptor)
      try unsafe expectAgreement(
        Renewed(
          credentialExpires: .random(using: &generator), reason: generator.text()),
        longlink__control__renewed__descriptor)
    }
  }

  @Test func `the fields are those of the description`() {
    #expect(
      unsafe Self.fields(longlink__control__hello__descriptor)
        == Hello.fields.map { ControlField($0.number, $0.name, $0.kind) })
    #expect(
      unsafe Self.fields(longlink__control__welcome__descriptor)
        == Welcome.fields.map { ControlField($0.number, $0.name, $0.kind) })
    #expect(unsafe Self.fields(longlink__control__go_away__descriptor) == GoAway.fields)
    #expect(
      unsafe Self.fields(longlink__control__metadata__descriptor)
        == Metadata.fields.map { ControlField($0.number, $0.name, $0.kind) })
    #expect(unsafe Self.fields(longlink__control__renewed__descriptor) == Renewed.fields)
  }

  private static func fields(_ descriptor: ProtobufCMessageDescriptor) -> [ControlField] {
    // The descriptor is generated: it has as many fields as it says, with names that end.
    (0..<Int(unsafe descriptor.n_fields)).map { index in
      let field = unsafe descriptor.fields[index]
      let kind: ControlField.Kind =
        switch unsafe field.type {
        case PROTOBUF_C_TYPE_STRING: .text
        case PROTOBUF_C_TYPE_BYTES: .bytes
        case PROTOBUF_C_TYPE_MESSAGE: .entry
        default: .number
        }
      return unsafe ControlField(field.id, String(cString: field.name), kind)
    }
  }

  /// Lets libprotobuf-c read a message and write it again.
  private func expectAgreement<Message: ControlBody & Equatable>(
    _ message: Message, _ descriptor: ProtobufCMessageDescriptor
  ) throws {
    let body = try message.encodedBytes()
    #expect(try message.encodedByteCount == body.count)
    let again = unsafe withUnsafePointer(to: descriptor) { descriptor -> [UInt8]? in
      guard let read = unsafe protobuf_c_message_unpack(descriptor, nil, body.count, body) else {
        return nil
      }
      defer { unsafe protobuf_c_message_free_unpacked(read, nil) }
      let count = unsafe protobuf_c_message_get_packed_size(read)
      guard count > 0 else { return [] }
      return unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, written in
        written = unsafe protobuf_c_message_pack(read, buffer.baseAddress)
      }
    }
    #expect(again == body, "\(message)")
    #expect(try Message(body: body) == message)
  }
}

extension SeededGenerator {
  /// 0 in one of four cases, and numbers of any length.
  fileprivate mutating func number() -> UInt64 {
    let bits = next()
    return bits & 3 == 0 ? 0 : next() >> (bits >> 2 & 63)
  }

  fileprivate mutating func bytes() -> [UInt8] {
    let count = next() & 3 == 0 ? 0 : Int(next() % 200)
    return (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) }
  }

  fileprivate mutating func text() -> String {
    let letters: [Character] = ["a", "ß", "無", "🚲", " ", "\n"]
    return String((0..<Int(next() % 30)).map { _ in letters[Int(next() % 6)] })
  }
}

extension UInt32 {
  fileprivate static func random(using generator: inout SeededGenerator) -> UInt32 {
    UInt32(truncatingIfNeeded: generator.number())
  }
}

extension KeySpace? {
  fileprivate static func random(using generator: inout SeededGenerator) -> KeySpace? {
    generator.next() & 1 == 0 ? nil : KeySpace(generator.next(), generator.next())
  }
}

extension Hello {
  fileprivate static func random(using generator: inout SeededGenerator) -> Hello {
    Hello(
      version: .random(using: &generator), features: generator.number(),
      maxBody: .random(using: &generator), maxInFlight: .random(using: &generator),
      heartbeatInterval: .random(using: &generator), heartbeatTimeout: .random(using: &generator),
      credential: generator.bytes(), name: generator.text(),
      streamCredit: .random(using: &generator),
      clientID: generator.next() & 1 == 0 ? nil : ClientID(generator.next(), generator.next()))
  }
}

extension Welcome {
  fileprivate static func random(using generator: inout SeededGenerator) -> Welcome {
    Welcome(
      version: .random(using: &generator), features: generator.number(),
      maxBody: .random(using: &generator), maxInFlight: .random(using: &generator),
      heartbeatInterval: .random(using: &generator), heartbeatTimeout: .random(using: &generator),
      name: generator.text(), streamCredit: .random(using: &generator),
      credentialExpires: .random(using: &generator), keySpace: .random(using: &generator),
      keyRetention: .random(using: &generator), keyTime: generator.number())
  }
}

extension GoAway {
  fileprivate static func random(using generator: inout SeededGenerator) -> GoAway {
    GoAway(
      code: .random(using: &generator), reason: generator.text(),
      requestsAccepted: generator.number(), spread: .random(using: &generator),
      retryAfter: .random(using: &generator),
      alternatives: (0..<Int(generator.next() % 4)).map { _ in generator.text() })
  }
}

extension Metadata {
  fileprivate static func random(using generator: inout SeededGenerator) -> Metadata {
    var metadata = Metadata(
      remaining: generator.next() & 1 == 0 ? nil : .random(using: &generator),
      priority: .random(using: &generator), idempotencyKey: generator.bytes(),
      entries: (0..<Int(generator.next() % 5)).map { _ in
        Entry(key: generator.text(), value: generator.text())
      },
      retryAfter: .random(using: &generator),
      credit: generator.next() & 1 == 0 ? nil : .random(using: &generator),
      items: generator.next() & 1 == 0, interrupted: generator.next() & 1 == 0,
      keySpace: .random(using: &generator), keyTime: generator.number(),
      replayed: generator.next() & 1 == 0)
    metadata.entries = metadata.canonicalEntries
    return metadata
  }
}
