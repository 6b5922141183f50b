// SPDX-License-Identifier: Apache-2.0

extension ProtobufReader {
  /// Whether the next field has this number, below 16, and is bytes, a string or a message.
  @inlinable
  package func isNext(_ number: UInt8) -> Bool {
    // In bounds: the condition checks that first.
    unsafe position < end && body[position] == number &<< 3 | WireType.lengthDelimited
  }

  /// Skips entries of a string map while they are ordinary: shorter than 128 bytes and with valid
  /// texts. `next()` reads all others. The field number of the map is below 16.
  ///
  /// Returns whether it skipped any. A peer can send thousands of entries at no cost, so each one
  /// must cost less than decoding a message.
  package mutating func skipOrdinaryEntries(of number: UInt8) -> Bool {
    let tag = number &<< 3 | WireType.lengthDelimited
    let first = position
    var index = first
    // In bounds: two bytes are left, followed by the length that the second one states.
    while end &- index >= 2, unsafe body[index] == tag {
      let begin = index &+ 2
      let length = unsafe Int(body[index &+ 1])
      guard length < 0x80, length <= end &- begin, isOrdinaryEntry(begin, begin &+ length) else {
        break
      }
      index = begin &+ length
    }
    position = index
    return index > first
  }

  /// Whether an entry contains only texts and unknown numbers of one byte.
  @inline(__always)
  private func isOrdinaryEntry(_ begin: Int, _ end: Int) -> Bool {
    var index = begin
    while index < end {
      guard end &- index >= 2 else { return false }
      // Both are inside the entry, which is inside the body.
      let (tag, size) = unsafe (body[index], Int(body[index &+ 1]))
      index &+= 2
      guard size < 0x80 else { return false }
      if tag == 0x0A || tag == 0x12 {
        guard size <= end &- index, isText(index, size) else { return false }
        index &+= size
      } else {
        // A number in a field from 3 to 15.
        guard tag & 7 == WireType.varint, (0x18..<0x80).contains(tag) else { return false }
      }
    }
    return true
  }

  @inline(__always)
  private func isText(_ begin: Int, _ count: Int) -> Bool {
    for index in begin..<begin &+ count {
      // Inside the body.
      let byte = unsafe body[index]
      if byte &- 1 < 0x7F { continue }
      guard byte != 0 else { return false }
      let text = unsafe UnsafeBufferPointer(start: body + begin, count: count)
      return (try? unsafe text.span.requireText(at: 0)) != nil
    }
    return true
  }
}
