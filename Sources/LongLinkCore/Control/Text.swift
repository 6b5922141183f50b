// SPDX-License-Identifier: Apache-2.0

extension UnsafeRawBufferPointer {
  /// Whether every byte is one of ASCII, and none is NUL.
  @inline(__always)
  package var isPlainText: Bool {
    guard count >= 8 else { return unsafe allSatisfy { $0 != 0 && $0 < 0x80 } }
    let (ones, highs): (UInt64, UInt64) = (0x0101_0101_0101_0101, 0x8080_8080_8080_8080)
    var offset = 0
    var marks: UInt64 = 0
    while offset < count {
      // The last word may begin before the end of the one before it, and is in bounds.
      let word = unsafe loadUnaligned(
        fromByteOffset: Swift.min(offset, count &- 8), as: UInt64.self)
      // Only where all is plain does neither a byte nor what is one less have its highest bit.
      marks |= word | (word &- ones)
      offset &+= 8
    }
    return marks & highs == 0
  }
}

extension Span<UInt8> {
  /// Throws where this, which begins at `offset`, is not UTF-8 or contains NUL.
  package func requireText(at offset: Int) throws(BodyError) {
    for index in indices where self[index] == 0 {
      throw BodyError(.interiorNUL, at: offset + index)
    }
    if let invalid = firstInvalidUTF8 { throw BodyError(.invalidUTF8, at: offset + invalid) }
  }

  /// Where the first byte stands that is not part of UTF-8, nil where all are.
  private var firstInvalidUTF8: Int? {
    guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else {
      // Says only that something is wrong, and copies the text to find out.
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
