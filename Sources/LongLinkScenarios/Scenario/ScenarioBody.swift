// SPDX-License-Identifier: Apache-2.0

internal import LongLinkTesting

/// The body of a scenario's messages: the key of a request, and instructions for the handler.
///
/// ```
/// 0   u64 the request's key
/// 8   u32 the length of the response's body
/// 12  u32 the time that the handler takes, in milliseconds
/// 16  filler bytes that depend on the key
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

  /// Reads a body; nil if its header is incomplete or the filler does not match the key.
  init?(_ bytes: [UInt8]) {
    guard bytes.count >= Self.headerLength else { return nil }
    key = UInt64(bytes.word(at: 0)) << 32 | UInt64(bytes.word(at: 4))
    answerSize = bytes.word(at: 8)
    delay = bytes.word(at: 12)
    guard bytes == self.bytes(count: bytes.count) else { return nil }
  }

  /// Returns the body with `count` bytes, but at least a header.
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
