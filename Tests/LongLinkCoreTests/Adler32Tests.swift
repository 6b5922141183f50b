// SPDX-License-Identifier: Apache-2.0

import CLongLinkAdler32
import LongLinkCore
import Testing

/// The reference below is RFC 1950's own definition. It and the known values were compared once
/// with the `adler32` of zlib, as Python 3 offers it.
struct Adler32Tests {
  @Test(arguments: [
    ("", 0x0000_0001),
    ("a", 0x0062_0062),
    ("abc", 0x024D_0127),
    ("Wikipedia", 0x11E6_0398),
    ("The quick brown fox jumps over the lazy dog", 0x5BDC_0FDA),
  ])
  func `known texts have their known checksums`(text: String, checksum: UInt32) {
    let bytes = Array(text.utf8)
    #expect(unsafe Adler32.checksum(of: bytes.span.bytes) == checksum)
    for implementation in Implementation.all {
      #expect(implementation.checksum(of: bytes[...]) == checksum)
    }
  }

  @Test func `the portable implementation is always there and comes last`() {
    #expect(Implementation.all.last?.name == "portable")
    #expect(Set(Implementation.all.map(\.name)).count == Implementation.all.count)
  }

  @Test(arguments: Implementation.all)
  func `every length has the checksum of the definition`(implementation: Implementation) {
    let bytes = randomBytes(10_000, seed: 1)
    var reference = Reference()
    #expect(implementation.checksum(of: []) == 1)
    for length in 1...10_000 {
      reference.add(bytes[length - 1])
      guard implementation.checksum(of: bytes[..<length]) != reference.checksum else { continue }
      Issue.record("\(implementation) is wrong for \(length) bytes")
      return
    }
  }

  @Test(arguments: Implementation.all)
  func `every start within a cache line has the checksum of the definition`(
    implementation: Implementation
  ) {
    let bytes = randomBytes(1_000, seed: 2)
    for start in 0..<64 {
      for length in [0, 1, 7, 15, 16, 17, 31, 33, 63, 64, 65, 127, 200, 900] {
        var reference = Reference()
        let part = bytes[start..<(start + length)]
        for byte in part { reference.add(byte) }
        #expect(implementation.checksum(of: part) == reference.checksum)
      }
    }
  }

  @Test(arguments: Implementation.all)
  func `a split anywhere changes nothing`(implementation: Implementation) {
    let bytes = randomBytes(5_000, seed: 3)
    var reference = Reference()
    for byte in bytes { reference.add(byte) }
    var dice = Seeded(4)
    for _ in 0..<500 {
      var checksum: UInt32 = 1
      var start = 0
      while start < bytes.count {
        let limit = dice.next() % 3 == 0 ? 5_000 : 40
        let length = min(Int(dice.next() % UInt64(limit)), bytes.count - start)
        checksum = implementation.checksum(
          of: bytes[start..<(start + length)],
          continuing: checksum
        )
        start += length
      }
      #expect(checksum == reference.checksum)
    }
  }

  @Test(arguments: Implementation.all)
  func `the largest sums do not overflow`(implementation: Implementation) {
    // Longer than any run between two remainders, from the largest sums that there are.
    let largest: UInt32 = 65_520 << 16 | 65_520
    let bytes = [UInt8](repeating: 0xFF, count: 300_000)
    var reference = Reference(checksum: largest)
    for length in 1...bytes.count {
      reference.add(0xFF)
      guard length % 9_973 < 3 || length.nonzeroBitCount < 3 || length == bytes.count else {
        continue
      }
      let checksum = implementation.checksum(of: bytes[..<length], continuing: largest)
      #expect(checksum == reference.checksum)
    }
  }

  @Test(arguments: Implementation.all)
  func `a frame has the checksum of its parts`(implementation: Implementation) {
    let bytes = randomBytes(3_100, seed: 6)
    for start in 0..<20 {
      for length in (0...300).map({ $0 }) + [1_000, 1_024, 3_000] {
        let frame = bytes[start..<start + 16 + length]
        let header = implementation.checksum(of: frame.prefix(12))
        let whole = implementation.checksum(of: frame.dropFirst(16), continuing: header)
        guard implementation.checksum(ofFrame: frame) != whole else { continue }
        Issue.record("\(implementation) is wrong for \(length) bytes of body")
        return
      }
    }
  }

  @Test(arguments: Implementation.all)
  func `the largest sums of a frame do not overflow`(implementation: Implementation) {
    let bytes = [UInt8](repeating: 0xFF, count: 300_000)
    for length in [0, 1, 15, 16, 239, 240, 254, 255, 256, 4_096, 65_536, 299_984] {
      let frame = bytes[..<(16 + length)]
      var reference = Reference()
      for _ in 0..<12 + length { reference.add(0xFF) }
      #expect(implementation.checksum(ofFrame: frame) == reference.checksum)
    }
  }

  @Test func `the wrapper continues from an earlier checksum`() {
    let bytes = randomBytes(100, seed: 5)
    let all = unsafe bytes.span.bytes
    let header = Adler32.checksum(of: all.extracting(first: 12))
    let whole = Adler32.checksum(of: all.extracting(12..<100), continuing: header)
    let atOnce = Adler32.checksum(of: all)
    #expect(whole == atOnce)
    #expect(header != whole)
  }
}

/// One of the C target's implementations.
struct Implementation: CustomStringConvertible, Sendable {
  var number: Int

  static var all: [Implementation] {
    (0..<cll_adler32_implementations()).map { Implementation(number: $0) }
  }

  var name: String {
    // The names are literals of the C target.
    unsafe String(cString: cll_adler32_implementation_name(number))
  }

  var description: String { name }

  func checksum(of bytes: ArraySlice<UInt8>, continuing: UInt32 = 1) -> UInt32 {
    // The buffer is read within the call alone, and its count is the slice's own.
    unsafe bytes.withUnsafeBufferPointer { buffer in
      unsafe cll_adler32_using(number, continuing, buffer.baseAddress, buffer.count)
    }
  }

  /// That of a whole frame, whose body begins behind 16 bytes.
  func checksum(ofFrame frame: ArraySlice<UInt8>) -> UInt32 {
    // As above; the slice holds the 16 bytes.
    unsafe frame.withUnsafeBufferPointer { buffer in
      unsafe cll_adler32_frame_using(number, buffer.baseAddress, buffer.count - 16)
    }
  }
}

/// RFC 1950, section 8.2, as it stands there.
private struct Reference {
  var a: UInt32 = 1
  var b: UInt32 = 0

  init(checksum: UInt32 = 1) {
    a = checksum & 0xFFFF
    b = checksum >> 16
  }

  var checksum: UInt32 { b << 16 | a }

  mutating func add(_ byte: UInt8) {
    a = (a + UInt32(byte)) % 65_521
    b = (b + a) % 65_521
  }
}

private func randomBytes(_ count: Int, seed: UInt64) -> [UInt8] {
  var dice = Seeded(seed)
  return dice.bytes(count)
}
