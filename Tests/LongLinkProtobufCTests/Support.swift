// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkProtobufC

/// SplitMix64 (Steele, Lea and Flood, 2014): small, and the same everywhere.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) {
    state = seed
  }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var word = state
    word = (word ^ (word >> 30)) &* 0xbf58_476d_1ce4_e5b9
    word = (word ^ (word >> 27)) &* 0x94d0_49bb_1331_11eb
    return word ^ (word >> 31)
  }
}

extension BodyDecodable {
  /// Reads a body that stands in an allocation of its own size, so that a read past it is found by
  /// the address sanitizer.
  init(body: [UInt8]) throws(BodyError) {
    let exact = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: body.count)
    defer { unsafe exact.deallocate() }
    unsafe _ = exact.initialize(fromContentsOf: body)
    // The allocation is freed after the last use of the span.
    self = try unsafe Self(decoding: UnsafeRawBufferPointer(exact).bytes)
  }
}

/// The error that reading a body ends with, nil where there is none.
func failure<Body: BodyDecodable>(_ type: Body.Type, _ body: [UInt8]) -> BodyError? {
  do throws(BodyError) {
    _ = try Body(body: body)
    return nil
  } catch {
    return error
  }
}

/// The bytes that pairs of hexadecimal digits stand for.
func bytes(_ hex: String) -> [UInt8] {
  let digits = hex.compactMap(\.hexDigitValue)
  return stride(from: 0, to: digits.count, by: 2).map { index in
    UInt8(digits[index] << 4 | digits[index + 1])
  }
}

/// A field whose value stands after its length.
func field(_ number: Int, _ value: [UInt8]) -> [UInt8] {
  varint(number << 3 | 2) + varint(value.count) + value
}

func varint(_ value: Int) -> [UInt8] {
  var rest = UInt64(bitPattern: Int64(value))
  var result: [UInt8] = []
  while rest >= 0x80 {
    result.append(UInt8(rest & 0x7f) | 0x80)
    rest >>= 7
  }
  return result + [UInt8(rest)]
}
