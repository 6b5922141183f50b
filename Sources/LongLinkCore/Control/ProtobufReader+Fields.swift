// SPDX-License-Identifier: Apache-2.0

extension ProtobufReader {
  /// A field of type `double`.
  @inlinable
  public mutating func double() throws(BodyError) -> Double {
    try Double(bitPattern: fixed64())
  }

  /// A field of type `float`.
  @inlinable
  public mutating func float() throws(BodyError) -> Float {
    try Float(bitPattern: fixed32())
  }

  /// A field of type `int32`, or the number of an enumeration's value.
  @inlinable
  public mutating func int32() throws(BodyError) -> Int32 {
    try Int32(truncatingIfNeeded: uint64())
  }

  /// A field of type `int64`.
  @inlinable
  public mutating func int64() throws(BodyError) -> Int64 {
    try Int64(bitPattern: uint64())
  }

  /// A field of type `uint32`.
  @inlinable
  public mutating func uint32() throws(BodyError) -> UInt32 {
    try UInt32(truncatingIfNeeded: uint64())
  }

  /// A field of type `uint64`.
  @inlinable
  public mutating func uint64() throws(BodyError) -> UInt64 {
    try require(WireType.varint)
    return try varint()
  }

  /// A field of type `sint32`.
  @inlinable
  public mutating func sint32() throws(BodyError) -> Int32 {
    let bits = try uint32()
    return Int32(bitPattern: bits >> 1 ^ (0 &- bits & 1))
  }

  /// A field of type `sint64`.
  @inlinable
  public mutating func sint64() throws(BodyError) -> Int64 {
    let bits = try uint64()
    return Int64(bitPattern: bits >> 1 ^ (0 &- bits & 1))
  }

  /// A field of type `fixed32`.
  @inlinable
  public mutating func fixed32() throws(BodyError) -> UInt32 {
    try require(WireType.fixed32)
    return try fixed(UInt32.self)
  }

  /// A field of type `fixed64`.
  @inlinable
  public mutating func fixed64() throws(BodyError) -> UInt64 {
    try require(WireType.fixed64)
    return try fixed(UInt64.self)
  }

  /// A field of type `sfixed32`.
  @inlinable
  public mutating func sfixed32() throws(BodyError) -> Int32 {
    try Int32(bitPattern: fixed32())
  }

  /// A field of type `sfixed64`.
  @inlinable
  public mutating func sfixed64() throws(BodyError) -> Int64 {
    try Int64(bitPattern: fixed64())
  }

  /// A field of type `bool`.
  @inlinable
  public mutating func bool() throws(BodyError) -> Bool {
    try uint64() != 0
  }

  /// A field of type `string`.
  ///
  /// Throws `.invalidUTF8` or `.interiorNUL` where it is not text that could be sent, and
  /// `.tooLarge` past the memory that decoding may take.
  public mutating func string() throws(BodyError) -> String {
    let text = try unsafe checkedText()
    try charge(text.count + MemoryLayout<String>.stride)
    return unsafe String(decoding: text, as: UTF8.self)
  }

  /// Checks a field of type `string` as reading it does, and passes over it.
  package mutating func checkString() throws(BodyError) {
    _ = try unsafe checkedText()
  }

  /// The bytes of a string, which stand in the body.
  private mutating func checkedText() throws(BodyError) -> UnsafeBufferPointer<UInt8> {
    try require(WireType.lengthDelimited)
    let range = try lengthDelimited()
    // The range is inside the body.
    let text = unsafe UnsafeBufferPointer(start: body + range.lowerBound, count: range.count)
    if !UnsafeRawBufferPointer(text).isPlainText {
      try unsafe text.span.requireText(at: range.lowerBound)
    }
    return unsafe text
  }

  /// A field of type `bytes`.
  ///
  /// Throws `.tooLarge` past the memory that decoding may take.
  public mutating func bytes() throws(BodyError) -> [UInt8] {
    try require(WireType.lengthDelimited)
    let range = try lengthDelimited()
    // As much as for a string.
    try charge(range.count + MemoryLayout<String>.stride)
    if range.isEmpty { return [] }
    // The range is inside the body.
    return unsafe [UInt8](UnsafeBufferPointer(start: body + range.lowerBound, count: range.count))
  }

  /// Where the bytes of a field of type `bytes` are, of which `copy` makes an array.
  @inlinable
  package mutating func bytesInPlace() throws(BodyError) -> Range<Int> {
    try require(WireType.lengthDelimited)
    return try lengthDelimited()
  }

  /// A copy of bytes that were found by `bytesInPlace`.
  package func copy(_ range: Range<Int>) -> [UInt8] {
    // The range is inside the body.
    unsafe [UInt8](UnsafeBufferPointer(start: body + range.lowerBound, count: range.count))
  }

  /// One message of a repeated field, whose fields `read` reads to their end.
  ///
  /// Throws what that throws, and `.tooDeep` where more than 100 stand inside each other.
  package mutating func message<Value>(
    _ read: (inout ProtobufReader) throws(BodyError) -> Value
  ) throws(BodyError) -> Value {
    let outerEnd = try enterMessage(isFirst: true)
    try charge(MemoryLayout<Value>.stride)
    let value = try read(&self)
    leaveMessage(outerEnd)
    return value
  }

  /// Calls `body` to read each value of a repeated field of numbers, booleans or enumerations.
  ///
  /// They may stand side by side (packed) or alone. Throws what `body` throws, and `.tooLarge` past
  /// the memory that decoding may take.
  ///
  /// ```swift
  /// case 3: try reader.each { value.numbers.append(try $0.int32()) }
  /// ```
  @inlinable
  public mutating func each(_ body: (inout ProtobufReader) throws -> Void) throws {
    guard wireType == WireType.lengthDelimited else {
      try charge(8)
      return try body(&self)
    }
    let outerEnd = try enterPacked()
    while position < end {
      try charge(8)
      try body(&self)
    }
    end = outerEnd
  }
}
