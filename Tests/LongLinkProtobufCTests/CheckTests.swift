// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore
import LongLinkDemoMessages
import LongLinkProtobufC
import Testing

@Suite struct CheckTests {
  /// `levels` messages inside each other below the outermost.
  private func nested(_ levels: Int) -> [UInt8] {
    // Built from the end, so that a hundred thousand levels take no square of that.
    var reversed: [UInt8] = []
    for _ in 0..<levels {
      reversed += varint(reversed.count).reversed()
      reversed += [0x01, 0x8a]
    }
    return reversed.reversed()
  }

  @Test func `a hundred messages may stand inside each other`() throws {
    let probe = try Probe(body: nested(100))
    var depth = 0
    var current = probe
    while let inner = current.inner.first {
      depth += 1
      current = inner
    }
    #expect(depth == 100)
    #expect(try probe.encodedBytes() == nested(100))
  }

  @Test(arguments: [101, 10_000, 100_000])
  func `more than a hundred are refused`(_ levels: Int) {
    #expect(failure(Probe.self, nested(levels))?.code == .tooDeep)
  }

  @Test func `depth counts through every kind of message field`() {
    for number in [17, 23, 32] {
      var body: [UInt8] = []
      for _ in 0..<101 { body = field(number, body) }
      #expect(failure(Probe.self, body)?.code == .tooDeep)
    }
  }

  @Test(
    arguments: [
      ("ff", 0), ("61c3", 1), ("c080", 0), ("eda080", 0), ("f4908080", 0), ("6161e282", 2),
    ]
  )
  func `text that is not UTF-8 is refused, with its place`(_ hex: String, _ index: Int) {
    let text = bytes(hex)
    #expect(failure(Probe.self, field(14, text)) == BodyError(.invalidUTF8, at: 2 + index))
    #expect(failure(Probe.self, field(21, text))?.code == .invalidUTF8)
    #expect(failure(Probe.self, field(31, text))?.code == .invalidUTF8)
    #expect(failure(Probe.self, field(40, field(2, text)))?.code == .invalidUTF8)
    #expect(failure(Hello.self, field(8, text))?.code == .invalidUTF8)
    #expect(failure(Probe.self, field(15, text)) == nil)
  }

  @Test func `text that contains NUL is refused, with its place`() {
    #expect(failure(Probe.self, field(14, [0x61, 0, 0x62])) == BodyError(.interiorNUL, at: 3))
    #expect(failure(FailRequest.self, field(2, [0]))?.code == .interiorNUL)
    #expect(failure(GoAway.self, field(6, [0]))?.code == .interiorNUL)
    #expect(failure(Metadata.self, field(4, field(1, [0])))?.code == .interiorNUL)
    #expect(failure(Hello.self, field(7, [0])) == nil)
  }

  @Test(
    arguments: [
      ("00", "field number 0"), ("0201", "field number 0 with a length"),
      ("8080808010", "field number past 2^29 - 1"), ("888080808000", "tag of six bytes"),
      ("0b0c", "group"), ("9b069c06", "unknown group"), ("0e", "wire type 6"),
      ("0f", "wire type 7"), ("18ffffffffffffffffffff01", "varint of eleven bytes"),
      ("f807ffffffffffffffffffff01", "unknown varint of eleven bytes"),
      ("7a808080808000", "length of six bytes"),
      ("92010bffffffffffffffffffff01", "packed varint of eleven bytes"),
    ]
  )
  func `a body that breaks the encoding is malformed`(_ hex: String, _ what: String) {
    #expect(failure(Probe.self, bytes(hex))?.code == .malformed, "\(what)")
  }

  @Test(
    arguments: [
      ("18", "no value"), ("1880", "half a varint"), ("3d000000", "half a fixed32"),
      ("4100000000000000", "half a fixed64"), ("7a", "no length"), ("7a02ff", "half a value"),
      ("7affffffff0f", "length of 4 GiB"), ("fa07ff", "unknown field past the end"),
      ("8a01021880", "half a varint inside"), ("920101ff", "half a packed varint"),
      ("a2010401020304", "half a packed fixed64"), ("8a01037a0261", "inner past its end"),
    ]
  )
  func `a body that ends too early is truncated`(_ hex: String, _ what: String) {
    #expect(failure(Probe.self, bytes(hex))?.code == .truncated, "\(what)")
  }

  @Test(
    arguments: [
      "0d01000000", "0900000000000000", "0a00", "3801", "4001", "690000000000000000", "6d00000000",
      "6a00", "7001", "7801", "880101", "9501000000", "a00101", "b00101", "f20100", "f80101",
    ]
  )
  func `a value of another type than the field has is refused`(_ hex: String) {
    let body = bytes(hex) + [UInt8](repeating: 0, count: 8)
    #expect(failure(Probe.self, body)?.code == .wrongType)
  }

  @Test func `unknown fields are skipped`() throws {
    let unknown = bytes("f80701 f9070000000000000000 fa0703616263 fd0700000000")
    #expect(try Probe(body: unknown + bytes("1805") + unknown) == Probe(u32: 5))
    #expect(try Hello(body: unknown) == Hello())
    #expect(try Tick(body: bytes("0803") + field(3, bytes("ff00ff"))) == Tick(number: 3))
  }

  @Test func `repeated numbers may be packed or not, and both`() throws {
    let body = bytes("920102 0102 9001 03 9a0101 04 9801 05")
    #expect(try Probe(body: body) == Probe(packed: [1, 2, 3], unpacked: [4, 5]))
    #expect(try Probe(body: bytes("9201 00")) == Probe())
  }

  @Test func `the last of several values counts`() throws {
    #expect(try Probe(body: bytes("1801 1802")) == Probe(u32: 2))
    #expect(try Probe(body: field(14, [0x61]) + field(14, [0x62])) == Probe(text: "b"))
    #expect(try Probe(body: field(15, [1]) + field(15, [])) == Probe())
    let changing = bytes("f00105") + field(31, [0x41]) + field(32, bytes("1801")) + bytes("f00107")
    #expect(try Probe(body: changing) == Probe(choice: .number(7)))
    #expect(
      try Probe(body: bytes("f00105") + field(32, bytes("1801")))
        == Probe(choice: .probe([Probe(u32: 1)]))
    )
    #expect(try Probe(body: bytes("f00105") + field(31, [0x41])) == Probe(choice: .text("A")))
  }

  @Test func `a repeated singular message is refused`() {
    let twice = BodyError(.notRepresentable, at: 5, detail: "field 17 occurs twice")
    #expect(failure(Probe.self, bytes("8a01021805 8a01022002")) == twice)
    let chosen = field(32, bytes("1801"))
    #expect(failure(Probe.self, chosen + bytes("f00105") + chosen)?.code == .notRepresentable)
    #expect(failure(Probe.self, field(23, []) + field(23, [])) == nil)
  }

  @Test func `numbers mean the same as in other implementations`() throws {
    #expect(try Probe(body: bytes("6802")).flag)
    #expect(try Probe(body: bytes("68808001")).flag)
    #expect(try Probe(body: bytes("800163")).colour == 99)
    #expect(try Probe(body: bytes("1880808080808001")).u32 == 0)
    #expect(try Probe(body: bytes("20ffffffffffffffffff7f")).u64 == .max)
    #expect(try Probe(body: bytes("888080800001")).i32 == 1)
    #expect(try Probe(body: bytes("7a818080800041")).blob == [0x41])
  }
}
