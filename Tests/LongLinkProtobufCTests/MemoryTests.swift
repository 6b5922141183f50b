// SPDX-License-Identifier: Apache-2.0

import CLongLinkDemo
import CLongLinkProbe
import LongLinkDriver
import LongLinkCore
import LongLinkDemoMessages
import LongLinkProtobufC
import Testing

@Suite struct MemoryTests {
  /// A message that counts as 40 bytes, of which a text takes 32 more.
  private struct Frugal: ProtobufCBody {
    var number: UInt64 = 0
    static let layout = unsafe ProtobufCLayout<Frugal>(
      initialize: longlink__demo__tick__init,
      fill: { _, _, _ in },
      read: { reader in
        while let field = try reader.next() {
          if field == 2 { _ = try reader.string() } else { try reader.skip() }
        }
        return Frugal()
      }
    )

    static var decodingMemoryLimit: Int { 72 }
  }

  private static let empties: [UInt8] = [0xba, 0x01, 0x00]

  @Test func `a body that would take too much memory is refused`() throws {
    // Three bytes of body make a whole structure each.
    let empties = [UInt8](repeatingBytes: Self.empties, count: 200_000)
    #expect(
      failure(Probe.self, empties)
        == BodyError(
          .tooLarge,
          detail: "decoding takes more than 67108864 bytes (Probe.decodingMemoryLimit)"))
  }

  @Test func `sparse elements of a wide message are within the limit, also deep inside others`()
    throws
  {
    for count in [100, 20_000] {
      let few = [UInt8](repeatingBytes: Self.empties, count: count)
      #expect(try Probe(body: few).probes.count == count)
    }
    // 80 messages, each in field 17 of the one around it.
    var nested: [UInt8] = []
    for _ in 0..<80 {
      let length =
        nested.count < 128
        ? [UInt8(nested.count)]
        : [UInt8(nested.count & 127 | 128), UInt8(nested.count >> 7)]
      nested = [0x8a, 0x01] + length + nested
    }
    #expect(try Probe(body: nested).encodedBytes() == nested)
  }

  @Test func `a message type may allow less`() {
    #expect(failure(Frugal.self, bytes("0801")) == nil)
    #expect(failure(Frugal.self, bytes("120161")) == nil)
    #expect(failure(Frugal.self, bytes("120161120161"))?.code == .tooLarge)
    // A text that is not in its place takes more.
    let long = [0x12, 16] + [UInt8](repeating: 97, count: 16)
    #expect(failure(Frugal.self, long)?.code == .tooLarge)
  }

  @Test func `ordinary large bodies are within the limit`() throws {
    let numbers = Probe(
      blob: [UInt8](repeating: 7, count: 8 << 20),
      packed: [UInt32](repeating: 1, count: 1 << 20)
    )
    #expect(try Probe(body: numbers.encodedBytes()) == numbers)
    let unpacked = Probe(unpacked: [UInt32](repeating: 1, count: 20_000))
    #expect(try Probe(body: unpacked.encodedBytes()) == unpacked)
  }
}

@Suite struct EncodingTests {
  @Test(arguments: ["\0", "a\0", "\0a", "a\0b"])
  func `text that contains NUL is not written`(_ text: String) {
    #expect(throws: BodyError.self) { try FailRequest(detail: text).encodedByteCount }
    #expect(throws: BodyError.self) { try FailRequest(detail: text).encodedBytes() }
    #expect(throws: BodyError.self) { try GoAway(alternatives: ["a", text]).encodedBytes() }
    #expect(throws: BodyError.self) {
      try Metadata(entries: [.init(key: text, value: "")]).encodedBytes()
    }
    #expect(throws: BodyError.self) { try Probe(inner: [Probe(text: text)]).encodedBytes() }
  }

  @Test func `messages of every length around what is packed unmeasured are packed alike`() throws {
    // Numbers in their longest form, so that nothing is left of what they may take.
    var probe = Probe(
      i32: -1, i64: -1, u32: .max, u64: .max, s32: .min, s64: .min, f32: 1, f64: 1, sf32: -1,
      sf64: -1, single: 1, twice: 1, flag: true, colour: -1, packed: [.max, .max],
      unpacked: [.max], fixed: [1], texts: ["a", ""], blobs: [[1], []], flags: [true],
      choice: .number(.max), names: [Probe.Name(key: .max, value: "b")])
    probe.probes = [probe, probe]
    probe.inner = [probe]
    for length in 0..<1_100 {
      probe.text = String(repeating: "x", count: length)
      let bytes = try probe.encodedBytes()
      #expect(try probe.encodedByteCount == bytes.count)
      let short = Probe(i32: -1, text: probe.text)
      #expect(try Probe(body: short.encodedBytes()) == short)
    }
    #expect(try Probe(body: probe.encodedBytes()) == probe)
  }

  @Test func `a body is appended behind what is there, and takes no more than it says`() throws {
    let request = FailRequest(code: 1_000, detail: String(repeating: "x", count: 300))
    let count = try request.encodedByteCount
    let frame = UnsafeMutableRawBufferPointer.allocate(byteCount: 16 + count + 8, alignment: 1)
    defer { unsafe frame.deallocate() }
    unsafe frame.copyBytes(from: [UInt8](repeating: 0xee, count: frame.count))
    var output = unsafe OutputRawSpan(buffer: frame, initializedCount: 16)
    try request.encode(into: &output)
    #expect(output.byteCount == 16 + count)
    let written = unsafe output.finalize(for: frame)
    #expect(written == 16 + count)
    let expected = try request.encodedBytes()
    #expect(unsafe Array(frame[16..<written]) == expected)
    #expect(unsafe frame[..<16].allSatisfy { $0 == 0xee })
    #expect(unsafe frame[written...].allSatisfy { $0 == 0xee })
  }

  @Test func `a filled C message is lent whole`() throws {
    let detail = try unsafe FailRequest(code: 7, detail: "why").withCMessage(
      as: Longlink__Demo__FailRequest.self
    ) { message in
      unsafe message.pointee.detail.map { unsafe String(cString: $0) }
    }
    #expect(detail == "why")
  }

  @Test func `a layout of another structure traps`() async {
    await #expect(processExitsWith: .failure) {
      try EncodingTests.lendAsAnother()
    }
  }

  private static func lendAsAnother() throws {
    try unsafe Tick().withCMessage(as: Longlink__Demo__FailRequest.self) { _ in }
  }

  @Test func `the error of a conversion is described without its contents`() {
    struct Secret: Error {}
    struct Refusing: ProtobufCBody {
      static let layout = unsafe ProtobufCLayout<Refusing>(
        initialize: longlink__demo__tick__init,
        fill: { _, _, _ in throw Secret() },
        read: { _ in throw BodyError(.malformed, detail: "as it was thrown") }
      )
    }
    #expect(throws: BodyError(.notRepresentable, detail: "Secret")) {
      try Refusing().encodedBytes()
    }
    #expect(throws: BodyError(.malformed, detail: "as it was thrown")) {
      try Refusing(body: [])
    }
  }
}

@Suite struct RawBodyTests {
  @Test func `bytes are a body as they stand`() throws {
    let body: [UInt8] = [0, 1, 255]
    #expect(body.encodedByteCount == 3)
    #expect(body.encodedBytes() == body)
    #expect(try [UInt8](body: body) == body)
    #expect(try [UInt8](body: []) == [])
    #expect([UInt8]().encodedBytes() == [])
  }

  @Test func `an empty body has no bytes`() throws {
    #expect(try EmptyBody().encodedBytes() == [])
    #expect(try EmptyBody(body: []) == EmptyBody())
    #expect(failure(EmptyBody.self, [0])?.code == .notRepresentable)
  }

  @Test func `an error says what, where and why`() {
    let error = BodyError(.truncated, at: 7, detail: "field 2")
    #expect("\(error)" == "truncated at byte 7: field 2")
    #expect("\(BodyError(.interiorNUL))" == "NUL in a string")
  }
}

extension [UInt8] {
  fileprivate init(repeatingBytes pattern: [UInt8], count: Int) {
    self = []
    reserveCapacity(pattern.count * count)
    for _ in 0..<count { self += pattern }
  }
}
