// SPDX-License-Identifier: Apache-2.0

extension UnsafeRawBufferPointer {
  /// Whether all bytes are ASCII and none is NUL.
  @inline(__always)
  package var isPlainText: Bool {
    guard count >= 8 else { return unsafe allSatisfy { $0 != 0 && $0 < 0x80 } }
    let (ones, highs): (UInt64, UInt64) = (0x0101_0101_0101_0101, 0x8080_8080_8080_8080)
    var offset = 0
    var marks: UInt64 = 0
    while offset < count {
      // The last word may overlap the one before it, and is in bounds.
      let word = unsafe loadUnaligned(
        fromByteOffset: Swift.min(offset, count &- 8), as: UInt64.self)
      // For plain text, the highest bit is clear in each byte and in the byte minus one.
      marks |= word | (word &- ones)
      offset &+= 8
    }
    return marks & highs == 0
  }
}

extension Span<UInt8> {
  /// Throws if the bytes, which begin at `offset` of a body, are not UTF-8 or contain NUL.
  package func requireText(at offset: Int) throws(BodyError) {
    for index in indices where self[index] == 0 {
      throw BodyError(.interiorNUL, at: offset + index)
    }
    if let invalid = firstInvalidUTF8 { throw BodyError(.invalidUTF8, at: offset + invalid) }
  }

  /// The position of the first byte that is not valid UTF-8; nil if all are valid.
  private var firstInvalidUTF8: Int? {
    guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else {
      // Finds only whether something is wrong, and copies the text to do so.
      let isValid = unsafe withUnsafeBufferPointer { text in
        unsafe String(validating: text, as: UTF8.self) != nil
      }
      return isValid ? nil : 0
    }
    do throws(UTF8.ValidationError) {
      _ = try UTF8Span(validating: self)
      return nil
    } catch {
      return error.byteOffsets.lowerBound
    }
  }
}
