// SPDX-License-Identifier: Apache-2.0

/// An encoded metadata block, as it follows its byte count in a frame.
///
/// Nearly all blocks hold only the remaining time, in a few bytes. Those are stored inline, which
/// avoids reference counting.
package enum MetadataBlock: Sendable {
  /// At most eight bytes, the first in the lowest bits.
  case short(UInt64, count: UInt8)
  case long([UInt8])

  package init(_ bytes: [UInt8]) {
    if bytes.count <= 8 {
      var word: UInt64 = 0
      for byte in bytes.reversed() { word = word << 8 | UInt64(byte) }
      self = .short(word, count: UInt8(bytes.count))
    } else {
      self = .long(bytes)
    }
  }

  /// The block's size in bytes.
  package var count: Int {
    switch self {
    case .short(_, let count): Int(count)
    case .long(let bytes): bytes.count
    }
  }

  /// Appends the count and the block.
  @inline(__always)
  func encode(into span: inout OutputRawSpan) {
    span.append(UInt8(truncatingIfNeeded: count >> 8))
    span.append(UInt8(truncatingIfNeeded: count))
    switch self {
    case .short(var word, let count):
      for _ in 0..<count {
        span.append(UInt8(truncatingIfNeeded: word))
        word >>= 8
      }
    case .long(let bytes):
      bytes.encode(into: &span)
    }
  }
}
