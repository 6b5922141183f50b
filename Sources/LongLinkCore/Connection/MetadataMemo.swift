// SPDX-License-Identifier: Apache-2.0

/// The last metadata of a connection. Most messages repeat it, and then it is not decoded again.
package struct MetadataMemo: Sendable {
  /// The metadata of the last message that had any.
  package private(set) var last = ReceivedMetadata()
  /// Whether `last` holds nothing but the remaining time.
  package private(set) var isPlain = true
  /// The encoding of `last`; nil if it is not remembered.
  private var block: [UInt8]? = []
  /// A block of up to eight bytes as a number, its first byte in the lowest bits; the mask of these
  /// bits; and their number of bytes. Without such a block, the mask is 0 and the count is -1.
  private var word: UInt64 = 0
  private var mask: UInt64 = 0
  private var shortCount = 0

  /// The most bytes that are remembered: larger blocks repeat less often, and cost more.
  static let longestBlock = 1024

  init() {}

  /// Holds metadata whose encoding is too long to be remembered, or will not come again.
  mutating func hold(_ metadata: ReceivedMetadata) {
    last = metadata
    isPlain = metadata.isPlain
    block = nil
    shortCount = -1
    mask = 0
  }

  /// Remembers metadata with its encoding.
  mutating func remember(_ metadata: ReceivedMetadata, _ block: [UInt8]) {
    hold(metadata)
    self.block = block
    guard block.count <= 8 else { return }
    shortCount = block.count
    word = 0
    for byte in block.reversed() {
      word = word << 8 | UInt64(byte)
      mask = mask << 8 | 0xFF
    }
  }

  /// Whether the metadata must be forgotten once its message was passed on.
  var isForgotten: Bool { block == nil }

  /// Whether a block of `count` bytes equals the last one. `word` has up to eight bytes from its
  /// start on, so it can contain what follows a shorter block.
  @inline(__always)
  func repeats(_ word: UInt64, count: Int) -> Bool {
    count == shortCount && (word ^ self.word) & mask == 0
  }

  /// Whether a block of any size equals the last one.
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
