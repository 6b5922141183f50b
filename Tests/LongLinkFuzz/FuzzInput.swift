// SPDX-License-Identifier: Apache-2.0

/// Bytes that decide what happens; beyond their end all are 0.
struct FuzzInput: RandomNumberGenerator {
  private let bytes: [UInt8]
  private var place = 0

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
  }

  var isEmpty: Bool { place == bytes.count }
  var left: Int { bytes.count - place }

  mutating func byte() -> UInt8 {
    guard !isEmpty else { return 0 }
    defer { place += 1 }
    return bytes[place]
  }

  /// As a source of chance it is as good as its bytes.
  mutating func next() -> UInt64 { UInt64(byte()) << 56 | UInt64(byte()) << 24 }

  /// A number from 0 on, below 65,536.
  mutating func below(_ bound: Int) -> Int {
    guard bound > 1 else { return 0 }
    return Int(bound > 256 ? word() : UInt16(byte())) % bound
  }

  mutating func word() -> UInt16 { UInt16(byte()) << 8 | UInt16(byte()) }

  mutating func long() -> UInt32 { UInt32(word()) << 16 | UInt32(word()) }

  mutating func pick<Value>(_ values: Value...) -> Value { values[below(values.count)] }

  mutating func take(_ count: Int) -> [UInt8] {
    let end = min(bytes.count, place + count)
    defer { place = end }
    return Array(bytes[place..<end])
  }

  mutating func rest() -> [UInt8] { take(bytes.count) }
}
