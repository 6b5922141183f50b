// SPDX-License-Identifier: Apache-2.0

extension ProtobufReader {
  /// Reads a field of type `double`.
  @inlinable
  public mutating func double() throws(BodyError) -> Double {
    try Double(bitPattern: fixed64())
  }

  /// Reads a field of type `float`.
  @inlinable
  public mutating func float() throws(BodyError) -> Float {
    try Float(bitPattern: fixed32())
  }

  /// Reads a field of type `int32`, or the number of an enumeration's value.
  @inlinable
  public mutating func int32() throws(BodyError) -> Int32 {
    try Int32(truncatingIfNeeded: uint64())
  }

  /// Reads a field of type `int64`.
  @inlinable
  public mutating func int64() throws(BodyError) -> Int64 {
    try Int64(bitPattern: uint64())
  }

  /// Reads a field of type `uint32`.
  @inlinable
  public mutating func uint32() throws(BodyError) -> UInt32 {
    try UInt32(truncatingIfNeeded: uint64())
  }

  /// Reads a field of type `uint64`.
  @inlinable
  public mutating func uint64() throws(BodyError) -> UInt64 {
    try require(WireType.varint)
    return try varint()
  }

  /// Reads a field of type `sint32`.
  @inlinable
  public mutating func sint32() throws(BodyError) -> Int32 {
    let bits = try uint32()
    return Int32(bitPattern: bits >> 1 ^ (0 &- bits & 1))
  }

  /// Reads a field of type `sint64`.
  @inlinable
  public mutating func sint64() throws(BodyError) -> Int64 {
    let bits = try uint64()
    return Int64(bitPattern: bits >> 1 ^ (0 &- bits & 1))
  }

  /// Reads a field of type `fixed32`.
  @inlinable
  public mutating func fixed32() throws(BodyError) -> UInt32 {
    try require(WireType.fixed32)
    return try fixed(UInt32.self)
  }

  /// Reads a field of type `fixed64`.
  @inlinable
  public mutating func fixed64() throws(BodyError) -> UInt64 {
    try require(WireType.fixed64)
    return try fixed(UInt64.self)
  }

  /// Reads a field of type `sfixed32`.
  @inlinable
  public mutating func sfixed32() throws(BodyError) -> Int32 {
    try Int32(bitPattern: fixed32())
  }

  /// Reads a field of type `sfixed64`.
  @inlinable
  public mutating func sfixed64() throws(BodyError) -> Int64 {
    try Int64(bitPattern: fixed64())
  }

  /// Reads a field of type `bool`.
  @inlinable
  public mutating func bool() throws(BodyError) -> Bool {
    try uint64() != 0
  }

  /// Reads a field of type `string`.
  ///
  /// Throws `.invalidUTF8` if it is not valid text, `.interiorNUL` if it contains U+0000, and
  /// `.tooLarge` or `.outOfMemory` if decoding would exceed a limit on memory.
  public mutating func string() throws(BodyError) -> String {
    let text = try unsafe checkedText()
    try charge(ProtobufReader.size(of: text.count, inPlace: 15))
    return unsafe String(decoding: text, as: UTF8.self)
  }

  /// The memory of a string or array of bytes: twice its place, because a growing array of them has
  /// room for twice as many, and what it allocates if it is not in its place.
  private static func size(of count: Int, inPlace short: Int) -> Int {
    let place = 2 * MemoryLayout<String>.stride
    return count <= short ? place : place + 48 + count
  }

  /// Checks a field of type `string` as reading it does, and skips it.
  package mutating func checkString() throws(BodyError) {
    _ = try unsafe checkedText()
  }

  /// Checks a string, and returns its bytes in the body.
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

  /// Reads a field of type `bytes`.
  ///
  /// Throws `.tooLarge` or `.outOfMemory` if decoding would exceed a limit on memory.
  public mutating func bytes() throws(BodyError) -> [UInt8] {
    try require(WireType.lengthDelimited)
    let range = try lengthDelimited()
    try charge(ProtobufReader.size(of: range.count, inPlace: 0))
    if range.isEmpty { return [] }
    // The range is inside the body.
    return unsafe [UInt8](UnsafeBufferPointer(start: body + range.lowerBound, count: range.count))
  }

  /// Reads the position of a field of type `bytes`; `copy` makes an array of it.
  @inlinable
  package mutating func bytesInPlace() throws(BodyError) -> Range<Int> {
    try require(WireType.lengthDelimited)
    return try lengthDelimited()
  }

  /// Returns a copy of the bytes at a position from `bytesInPlace`.
  package func copy(_ range: Range<Int>) -> [UInt8] {
    // The range is inside the body.
    unsafe [UInt8](UnsafeBufferPointer(start: body + range.lowerBound, count: range.count))
  }

  /// Reads one message of a repeated field; `read` must read all of its fields.
  ///
  /// Throws the errors of `read`, and `.tooDeep` if more than 100 messages are nested.
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
  /// They can be packed or not. Each counts as 16 bytes of memory. Throws the errors of `body`, and
  /// `.tooLarge` or `.outOfMemory` if decoding would exceed a limit on memory.
  ///
  /// ```swift
  /// case 3: try reader.each { value.numbers.append(try $0.int32()) }
  /// ```
  @inlinable
  public mutating func each(_ body: (inout ProtobufReader) throws -> Void) throws {
    guard wireType == WireType.lengthDelimited else {
      try charge(ProtobufReader.numberSize)
      return try body(&self)
    }
    let outerEnd = try enterPacked()
    while position < end {
      try charge(ProtobufReader.numberSize)
      try body(&self)
    }
    end = outerEnd
  }

  /// The memory of a number in an array, which has room for twice as many as it grows.
  @inlinable static var numberSize: Int { 16 }
}
