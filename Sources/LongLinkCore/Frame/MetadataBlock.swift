// SPDX-License-Identifier: Apache-2.0

/// An encoded metadata block, as it follows its byte count in a frame.
///
/// Nearly all blocks hold only the remaining time, in a few bytes. Those are stored inline, which
/// avoids reference counting.
@usableFromInline package enum MetadataBlock: Sendable {
  /// At most eight bytes, the first one in the lowest bits.
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
  @inlinable package var count: Int {
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
    case .short(let word, let count):
      span.append(lowBytes: Int(count), of: word)
    case .long(let bytes):
      bytes.encode(into: &span)
    }
  }
}

extension OutputRawSpan {
  /// Appends the lowest bytes of a word, the lowest one first.
  @inline(__always)
  fileprivate mutating func append(lowBytes count: Int, of word: UInt64) {
    guard freeCapacity >= 8, count <= 8 else {
      var word = word
      for _ in 0..<count {
        append(UInt8(truncatingIfNeeded: word))
        word >>= 8
      }
      return
    }
    unsafe withUnsafeMutableBytes { buffer, initialized in
      // There is room for the whole word. Later appends overwrite the unused part.
      unsafe buffer.storeBytes(of: word.littleEndian, toByteOffset: initialized, as: UInt64.self)
      initialized += count
    }
  }
}

extension FrameHead {
  /// The head of a message with this metadata, if any, and a payload of `count` bytes.
  init(
    message kind: FrameKind, tag: UInt32, serial: UInt32, _ metadata: MetadataBlock?, count: Int
  ) {
    guard let metadata else {
      self.init(kind, tag: tag, serial: serial, length: count)
      return
    }
    precondition(metadata.count <= Wire.metadataLimit, "the metadata has no room for its count")
    self.init(kind, flags: .metadata, tag: tag, serial: serial, length: 2 + metadata.count + count)
  }
}
