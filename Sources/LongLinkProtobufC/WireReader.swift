internal import LongLinkCore

/// How the value of a field is written, as the Protocol Buffers encoding numbers it; groups, which
/// proto3 does not have and libprotobuf-c does not read, are left out.
enum WireType: UInt8 {
  case varint = 0
  case fixed64 = 1
  case lengthDelimited = 2
  case fixed32 = 5
}

/// Steps through a part of a body, never past its end.
struct WireReader {
  private(set) var position: Int
  private let end: Int

  init(_ range: Range<Int>) {
    position = range.lowerBound
    end = range.upperBound
  }

  var isAtEnd: Bool { position == end }

  /// The field number, from 1 to 2^29 - 1, and how the value that follows is written.
  mutating func tag(
    in bytes: Span<UInt8>
  ) throws(BodyError) -> (number: UInt32, wireType: WireType) {
    let start = position
    let value = try varint(in: bytes, longest: 5)
    guard let value = UInt32(exactly: value), value >> 3 > 0 else {
      throw BodyError(.malformed, at: start, detail: "field number out of range")
    }
    guard let wireType = WireType(rawValue: UInt8(value & 7)) else {
      throw BodyError(.malformed, at: start, detail: "wire type \(value & 7)")
    }
    return (value >> 3, wireType)
  }

  /// A value of up to `longest` bytes; bits past the 64th are dropped, as everywhere.
  @discardableResult
  mutating func varint(in bytes: Span<UInt8>, longest: Int = 10) throws(BodyError) -> UInt64 {
    let start = position
    var value: UInt64 = 0
    for index in 0..<longest {
      guard position < end else { throw BodyError(.truncated, at: start) }
      let byte = bytes[position]
      position += 1
      value |= UInt64(byte & 0x7f) << UInt64(7 * index)
      if byte < 0x80 { return value }
    }
    throw BodyError(.malformed, at: start, detail: "varint longer than \(longest) bytes")
  }

  /// The bytes of a value whose length stands before it.
  mutating func lengthDelimited(in bytes: Span<UInt8>) throws(BodyError) -> Range<Int> {
    let start = position
    let length = try varint(in: bytes, longest: 5)
    guard length <= UInt64(end - position) else { throw BodyError(.truncated, at: start) }
    let first = position
    position += Int(length)
    return first..<position
  }

  /// Passes over the value of a field, whatever it is.
  mutating func skip(_ wireType: WireType, in bytes: Span<UInt8>) throws(BodyError) {
    switch wireType {
    case .varint: try varint(in: bytes)
    case .fixed64: try skip(8)
    case .fixed32: try skip(4)
    case .lengthDelimited: _ = try lengthDelimited(in: bytes)
    }
  }

  private mutating func skip(_ count: Int) throws(BodyError) {
    guard end - position >= count else { throw BodyError(.truncated, at: position) }
    position += count
  }
}
