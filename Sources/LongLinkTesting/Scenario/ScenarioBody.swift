// SPDX-License-Identifier: Apache-2.0

/// What a scenario's bodies say: whose they are, and what the handler is to do.
///
/// ```
/// 0   u64 the request's key
/// 8   u32 the bytes of the answer
/// 12  u32 how long the handler takes, in milliseconds
/// 16  bytes that the key determines
/// ```
struct ScenarioBody: Hashable, Sendable {
  static let headerLength = 16

  var key: UInt64
  var answerSize: UInt32 = 0
  var delay: UInt32 = 0

  init(key: UInt64, answerSize: UInt32 = 0, delay: UInt32 = 0) {
    self.key = key
    self.answerSize = answerSize
    self.delay = delay
  }

  /// Reads a body; nil where its header is not whole or the rest is not the key's.
  init?(_ bytes: [UInt8]) {
    guard bytes.count >= Self.headerLength else { return nil }
    key = UInt64(bytes.word(at: 0)) << 32 | UInt64(bytes.word(at: 4))
    answerSize = bytes.word(at: 8)
    delay = bytes.word(at: 12)
    guard bytes == self.bytes(count: bytes.count) else { return nil }
  }

  /// The body with `count` bytes, but at least those of the header.
  func bytes(count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(max(count, Self.headerLength))
    bytes.appendWord(UInt32(truncatingIfNeeded: key >> 32))
    bytes.appendWord(UInt32(truncatingIfNeeded: key))
    bytes.appendWord(answerSize)
    bytes.appendWord(delay)
    let filler = UInt8(truncatingIfNeeded: key &* 0x9D)
    bytes += repeatElement(filler, count: max(0, count - Self.headerLength))
    return bytes
  }
}
