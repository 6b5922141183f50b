// SPDX-License-Identifier: Apache-2.0

/// A writer of message fields in the Protocol Buffers encoding, in the order of the calls.
///
/// A field with its default value, 0 or empty, is omitted, as proto3 specifies.
package struct ProtobufWriter {
  package private(set) var bytes: [UInt8] = []

  package init() {}

  /// Makes a writer that takes the memory of a buffer, whose bytes are dropped.
  init(reusing buffer: inout [UInt8]) {
    swap(&bytes, &buffer)
    bytes.removeAll(keepingCapacity: true)
  }

  mutating func uint32(_ field: UInt8, _ value: UInt32) { uint64(field, UInt64(value)) }

  package mutating func uint64(_ field: UInt8, _ value: UInt64) {
    if value != 0 { present(field, value) }
  }

  package mutating func bool(_ field: UInt8, _ value: Bool) { uint64(field, value ? 1 : 0) }

  /// Writes a field with a number, even if the number is 0.
  package mutating func present(_ field: UInt8, _ value: UInt64) {
    tag(field, WireType.varint)
    varint(value)
  }

  package mutating func bytes(_ field: UInt8, _ value: [UInt8]) {
    if !value.isEmpty { lengthDelimited(field, value) }
  }

  /// Writes 16 bytes, which two numbers hold.
  mutating func halves(_ field: UInt8, _ high: UInt64, _ low: UInt64) {
    tag(field, WireType.lengthDelimited)
    bytes.append(16)
    append(high)
    append(low)
  }

  private mutating func append(_ half: UInt64) {
    unsafe withUnsafeBytes(of: half.bigEndian) { unsafe bytes.append(contentsOf: $0) }
  }

  /// Throws `.interiorNUL` if the text contains U+0000, which would end the string in C programs.
  package mutating func string(_ field: UInt8, _ value: String) throws(BodyError) {
    if !value.isEmpty { try element(field, value) }
  }

  /// Writes one string of a repeated field, even if it is empty. Throws like `string`.
  package mutating func element(_ field: UInt8, _ value: String) throws(BodyError) {
    guard !value.utf8.contains(0) else {
      throw BodyError(.interiorNUL, detail: "a string to be sent contains U+0000")
    }
    lengthDelimited(field, Array(value.utf8))
  }

  /// Writes one message of a repeated field, even if it is empty.
  package mutating func message(
    _ field: UInt8, _ body: (inout ProtobufWriter) throws(BodyError) -> Void
  ) throws(BodyError) {
    var inner = ProtobufWriter()
    try body(&inner)
    lengthDelimited(field, inner.bytes)
  }

  private mutating func lengthDelimited(_ field: UInt8, _ value: [UInt8]) {
    tag(field, WireType.lengthDelimited)
    varint(UInt64(value.count))
    bytes += value
  }

  /// Writes a tag of one byte: all field numbers here are below 16.
  private mutating func tag(_ field: UInt8, _ type: UInt8) {
    bytes.append(field << 3 | type)
  }

  private mutating func varint(_ value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }
}
