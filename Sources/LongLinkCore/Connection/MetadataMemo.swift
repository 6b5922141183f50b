// SPDX-License-Identifier: Apache-2.0

/// The last metadata of a connection. Most messages repeat it, and then it is not decoded again.
package struct MetadataMemo: Sendable {
  /// The metadata of the last message that had any.
  package private(set) var last = ReceivedMetadata()
  /// Whether it holds nothing but the remaining time.
  package private(set) var isPlain = true
  /// Its encoding; nil if it was too long to remember.
  private var block: [UInt8]? = []
  /// The same as a number, the first byte in its lowest bits, and which bits count. None do if the
  /// block is longer than eight bytes, or not remembered, and then the count is -1.
  private var word: UInt64 = 0
  private var mask: UInt64 = 0
  private var shortCount = 0

  /// The most bytes that are remembered: larger blocks repeat less often, and cost more.
  static let longestBlock = 1024

  init() {}

  /// Remembers metadata with its encoding: nil for one that is too long.
  init(_ metadata: ReceivedMetadata, block: [UInt8]?) {
    last = metadata
    isPlain = metadata.isPlain
    self.block = block
    guard let block, block.count <= 8 else {
      shortCount = -1
      return
    }
    shortCount = block.count
    for byte in block.reversed() {
      word = word << 8 | UInt64(byte)
      mask = mask << 8 | 0xFF
    }
  }

  /// Whether it must be forgotten once its message was passed on.
  var isTooLong: Bool { block == nil }

  /// Whether a short block of this size is equal, which is read in one piece with what follows it.
  @inline(__always)
  func repeats(_ word: UInt64, count: Int) -> Bool {
    count == shortCount && (word ^ self.word) & mask == 0
  }

  /// Whether a block is equal.
  func repeats(_ other: RawSpan) -> Bool {
    guard let block, other.byteCount == block.count else { return false }
    for index in block.indices {
      // In bounds: the counts are equal.
      let byte = unsafe other.unsafeLoad(fromUncheckedByteOffset: index, as: UInt8.self)
      if byte != block[index] { return false }
    }
    return true
  }
}
