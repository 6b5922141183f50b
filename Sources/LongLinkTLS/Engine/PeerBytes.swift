// SPDX-License-Identifier: Apache-2.0

internal import COpenSSL

/// An element of ASN.1, which certificates and names are made of.
struct ASN1Part {
  let tag: Int
  let isUniversal: Bool
  let isConstructed: Bool
  /// The position of the content in the bytes that were read.
  let content: Range<Int>

  /// Whether the part has this tag of the universal class, which ASN.1 itself defines.
  func has(_ tag: CInt) -> Bool { isUniversal && self.tag == Int(tag) }
}

/// Readers of bytes from a peer. Each takes something from the front of `rest`, a range of these
/// bytes, and returns nil if the range is too short for it.
extension Span<UInt8> {
  /// Takes a big-endian number of at most 8 bytes; with 8 it may be negative.
  func takeNumber(_ size: Int, from rest: inout Range<Int>) -> Int? {
    guard let bytes = take(size, from: &rest) else { return nil }
    var number = 0
    for index in bytes { number = number << 8 | Int(self[index]) }
    return number
  }

  func take(_ count: Int, from rest: inout Range<Int>) -> Range<Int>? {
    guard rest.count >= count else { return nil }
    let taken = rest.prefix(count)
    rest.removeFirst(count)
    return taken
  }

  /// Takes a vector that follows its length, a number of `size` bytes. Returns the vector's range.
  func takeVector(_ size: Int, from rest: inout Range<Int>) -> Range<Int>? {
    guard let count = takeNumber(size, from: &rest) else { return nil }
    return take(count, from: &rest)
  }

  /// Whether the bytes at a range equal one of some values.
  func has(_ values: [[UInt8]], at range: Range<Int>) -> Bool {
    values.contains { value in
      value.count == range.count && zip(value, range).allSatisfy { $0 == self[$1] }
    }
  }

  // MARK: ASN.1

  /// Takes the part that OpenSSL (`ASN1_get_object`) would take, with one exception: the length has
  /// to be stated, as in all certificates. It may have leading zeros.
  func takePart(from rest: inout Range<Int>) -> ASN1Part? {
    guard let first = takeNumber(1, from: &rest),
      let tag = first & 0x1F == 0x1F ? takeTag(from: &rest) : first & 0x1F,
      let count = takeLength(from: &rest), let content = take(count, from: &rest)
    else { return nil }
    return ASN1Part(
      tag: tag, isUniversal: first >> 6 == 0, isConstructed: first & 0x20 != 0, content: content)
  }

  /// Takes a tag in its long form, seven bits a byte.
  private func takeTag(from rest: inout Range<Int>) -> Int? {
    var tag = 0
    while tag <= Int(CInt.max) >> 7, let byte = takeNumber(1, from: &rest) {
      tag = tag << 7 | byte & 0x7F
      if byte & 0x80 == 0 { return tag }
    }
    return nil
  }

  private func takeLength(from rest: inout Range<Int>) -> Int? {
    guard let first = takeNumber(1, from: &rest) else { return nil }
    guard first & 0x80 != 0 else { return first }
    // As OpenSSL 3.0, wants a byte after the length, even if the length is 0.
    let size = first & 0x7F
    guard size > 0, size < rest.count else { return nil }
    var length = 0
    for _ in 0..<size {
      guard let byte = takeNumber(1, from: &rest), length <= count else { return nil }
      length = length << 8 | byte
    }
    return length
  }

  /// Takes a sequence, and returns its content.
  func takeSequence(from rest: inout Range<Int>) -> Range<Int>? {
    guard let part = takePart(from: &rest), part.has(V_ASN1_SEQUENCE) else { return nil }
    return part.content
  }

  /// Counts the parts in a range, also those in the values of extensions, down from `left`. Returns
  /// false if there are more, if they are nested deeper than `depth`, or if one is damaged.
  func countParts(_ range: Range<Int>, depth: Int, left: inout Int) -> Bool {
    var rest = range
    while !rest.isEmpty {
      guard depth >= 0, left > 0, let part = takePart(from: &rest) else { return false }
      left -= 1
      if part.isConstructed {
        guard countParts(part.content, depth: depth - 1, left: &left) else { return false }
      } else if part.has(V_ASN1_OCTET_STRING) {
        // The value of an extension is an octet string. Other octet strings count as far as they
        // parse.
        guard countParts(part.content, depth: depth - 1, left: &left) || left > 0 else {
          return false
        }
      }
    }
    return true
  }
}
