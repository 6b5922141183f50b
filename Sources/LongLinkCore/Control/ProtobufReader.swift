// SPDX-License-Identifier: Apache-2.0

/// A reader of the fields of a Protocol Buffers message.
///
/// ```swift
/// while let field = try reader.next() {
///   switch field {
///   case 1: value.code = try reader.uint32()
///   case 2: value.detail = try reader.string()
///   default: try reader.skip()
///   }
/// }
/// ```
///
/// A reader is valid only during the call to which it is passed. After each `next()`, read the
/// value once with the function named like its type in the `.proto` file, or skip it. These
/// functions throw `.truncated` or `.malformed` if the encoding is broken, and `.wrongType` if the
/// value has another type.
@safe
public struct ProtobufReader: ~Copyable {
  /// The body, which outlives the reader and has at least `end` bytes.
  @usableFromInline
  let body: UnsafePointer<UInt8>
  /// The index in the body of the next byte to read, from 0 to `end`.
  @usableFromInline
  var position = 0
  /// The end of the current message.
  @usableFromInline
  var end: Int
  /// The start of the current field.
  @usableFromInline
  var start = 0
  @usableFromInline
  var number: UInt32 = 0
  @usableFromInline
  var wireType: UInt8 = 0
  private var depth = 0
  /// The memory in bytes that the value can take before more is asked for.
  @usableFromInline
  package var allowance: Int
  /// The source of more allowance, which outlives the reader. Nil if `allowance` is all there is.
  private let memory: UnsafeMutablePointer<DecodingMemory>?

  /// Makes a reader of a whole control message or block of metadata, which must outlive it.
  ///
  /// These have at most 65,536 bytes, so that decoding one takes at most about 4 MiB.
  package init(control body: UnsafeBufferPointer<UInt8>) {
    unsafe self.init(body, allowance: body.count * 64 + 65_536, memory: nil)
  }

  /// Makes a reader of a whole body that takes memory from `memory`. Both must outlive it.
  @usableFromInline
  package init(
    _ body: UnsafeBufferPointer<UInt8>, charging memory: UnsafeMutablePointer<DecodingMemory>
  ) {
    unsafe self.init(body, allowance: memory.pointee.left, memory: memory)
  }

  private init(
    _ body: UnsafeBufferPointer<UInt8>, allowance: Int,
    memory: UnsafeMutablePointer<DecodingMemory>?
  ) {
    // An empty body may have no address; this placeholder is never read.
    unsafe self.body = body.baseAddress ?? UnsafePointer(bitPattern: 1)!
    end = body.count
    self.allowance = allowance
    unsafe self.memory = memory
  }

  /// Returns the number of the next field, from 1 to 2^29 - 1; nil at the end of the message.
  @inlinable
  public mutating func next() throws(BodyError) -> UInt32? {
    guard position < end else { return nil }
    start = position
    // In bounds by the line before.
    let byte = unsafe body[position]
    guard byte & 0x80 == 0, byte >> 3 != 0, WireType.exists(byte & 7) else { return try longTag() }
    position &+= 1
    wireType = byte & 7
    number = UInt32(byte >> 3)
    return number
  }

  /// Skips the value of the current field, whatever its type.
  @inlinable
  public mutating func skip() throws(BodyError) {
    switch wireType {
    case WireType.varint: _ = try varint()
    case WireType.fixed64: _ = try fixed(UInt64.self)
    case WireType.fixed32: _ = try fixed(UInt32.self)
    default: _ = try lengthDelimited()
    }
  }

  @usableFromInline
  mutating func longTag() throws(BodyError) -> UInt32 {
    let value = try longVarint(longest: 5)
    guard let value = UInt32(exactly: value), value >> 3 > 0 else {
      throw BodyError(.malformed, at: start, detail: "field number out of range")
    }
    guard WireType.exists(UInt8(value & 7)) else {
      throw BodyError(.malformed, at: start, detail: "wire type \(value & 7)")
    }
    wireType = UInt8(value & 7)
    number = value >> 3
    return number
  }
}

/// The wire types of the Protocol Buffers encoding, except groups, which proto3 does not have.
@usableFromInline
enum WireType {
  @inlinable static var varint: UInt8 { 0 }
  @inlinable static var fixed64: UInt8 { 1 }
  @inlinable static var lengthDelimited: UInt8 { 2 }
  @inlinable static var fixed32: UInt8 { 5 }
  /// One number of a packed field. This type does not occur on the wire.
  @inlinable static var packed: UInt8 { 8 }

  @inlinable
  static func exists(_ type: UInt8) -> Bool { 0b10_0111 >> type & 1 == 1 }
}

// MARK: - Encoded values

extension ProtobufReader {
  /// Reads a number of up to `longest` bytes; bits past the 64th are dropped, as is usual.
  @inlinable
  mutating func varint(longest: Int = 10) throws(BodyError) -> UInt64 {
    guard position < end else { return try longVarint(longest: longest) }
    // In bounds by the line before.
    let byte = unsafe body[position]
    guard byte < 0x80 else { return try longVarint(longest: longest) }
    position &+= 1
    return UInt64(byte)
  }

  @usableFromInline
  mutating func longVarint(longest: Int) throws(BodyError) -> UInt64 {
    let first = position
    let last = first &+ min(longest, end &- first)
    var value: UInt64 = 0
    var shift: UInt64 = 0
    var index = first
    while index < last {
      // In bounds, because `last` is not past the end.
      let byte = unsafe UInt64(body[index])
      index &+= 1
      value |= (byte & 0x7f) &<< shift
      if byte < 0x80 {
        position = index
        return value
      }
      shift &+= 7
    }
    guard last - first == longest else { throw BodyError(.truncated, at: first) }
    throw BodyError(.malformed, at: first, detail: "varint longer than \(longest) bytes")
  }

  /// Reads a number of fixed size, in little-endian order.
  @inlinable
  mutating func fixed<Bits: FixedWidthInteger & BitwiseCopyable>(
    _ type: Bits.Type
  ) throws(BodyError) -> Bits {
    let size = MemoryLayout<Bits>.size
    guard end - position >= size else { throw BodyError(.truncated, at: position) }
    // In bounds by the line before.
    let bits = unsafe UnsafeRawPointer(body + position).loadUnaligned(as: type)
    position &+= size
    return Bits(littleEndian: bits)
  }

  /// Reads a length, and returns the range of the bytes that follow it.
  @inlinable
  @inline(__always)
  mutating func lengthDelimited() throws(BodyError) -> Range<Int> {
    let first = position
    let length = try varint(longest: 5)
    guard length <= UInt64(end &- position) else { throw BodyError(.truncated, at: first) }
    let lowerBound = position
    position &+= Int(truncatingIfNeeded: length)
    return lowerBound..<position
  }

  /// Subtracts memory that the value takes from the allowance.
  @inlinable
  package mutating func charge(_ byteCount: Int) throws(BodyError) {
    allowance -= byteCount
    if allowance < 0 { try askForMore() }
  }

  @usableFromInline
  mutating func askForMore() throws(BodyError) {
    guard let memory = unsafe memory else {
      throw BodyError(.tooLarge, detail: "decoding takes more memory than a control message may")
    }
    // `memory` outlives the reader, and nothing else uses it meanwhile.
    allowance = try unsafe memory.pointee.allowance(after: allowance)
  }

  /// Throws if the current field has another wire type.
  // Mutating, like all functions that run for each field, so that the reader is not copied: the
  // copy would load it in wider steps than it was just stored, which stalls.
  @inlinable
  mutating func require(_ type: UInt8) throws(BodyError) {
    if wireType != type { try requirePacked(type) }
  }

  @usableFromInline
  mutating func requirePacked(_ type: UInt8) throws(BodyError) {
    guard wireType == WireType.packed, type != WireType.lengthDelimited else {
      throw BodyError(.wrongType, at: start, detail: "field \(number)")
    }
  }
}

// MARK: - Nested values

extension ProtobufReader {
  /// The number of nesting levels allowed below the outermost message: the default of Google's
  /// implementations.
  private static var maximumDepth: Int { 100 }

  /// Enters the message in the current field; returns the end of the outer message.
  @usableFromInline
  package mutating func enterMessage(isFirst: Bool) throws(BodyError) -> Int {
    try require(WireType.lengthDelimited)
    let inner = try lengthDelimited()
    guard isFirst else {
      throw BodyError(.notRepresentable, at: start, detail: "field \(number) occurs twice")
    }
    guard depth < ProtobufReader.maximumDepth else { throw BodyError(.tooDeep, at: start) }
    depth += 1
    let outerEnd = end
    (position, end) = (inner.lowerBound, inner.upperBound)
    return outerEnd
  }

  /// Continues behind the message that was read.
  @usableFromInline
  package mutating func leaveMessage(_ outerEnd: Int) {
    depth -= 1
    (position, end) = (end, outerEnd)
  }

  /// Enters the numbers of a packed field; returns the end of the outer message.
  @usableFromInline
  mutating func enterPacked() throws(BodyError) -> Int {
    let values = try lengthDelimited()
    let outerEnd = end
    (position, end) = (values.lowerBound, values.upperBound)
    wireType = WireType.packed
    return outerEnd
  }
}
