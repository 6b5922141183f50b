// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// A message of uploads, in the Protocol Buffers encoding.
///
/// One function, `code`, names the fields for reading and for writing. So programs with uploads
/// need no library for Protocol Buffers.
package protocol UploadMessage: BodyEncodable, BodyDecodable, Hashable, Sendable {
  /// Makes a message whose fields have their default values.
  init()
  /// Calls `coder` with each field and its number, in the order of the numbers.
  mutating func code(_ coder: inout some FieldCoder & ~Copyable) throws(BodyError)
}

/// A reader or writer of a message's fields.
package protocol FieldCoder: ~Copyable {
  mutating func field(_ number: UInt8, _ value: inout Bool) throws(BodyError)
  mutating func field(_ number: UInt8, _ value: inout UInt64) throws(BodyError)
  /// Reads or writes a number; unless it is nil, it is written even if it is 0.
  mutating func field(_ number: UInt8, _ value: inout UInt64?) throws(BodyError)
  mutating func field(_ number: UInt8, _ value: inout UploadState) throws(BodyError)
  mutating func field(_ number: UInt8, _ value: inout [UInt8]) throws(BodyError)
  mutating func field(_ number: UInt8, _ value: inout String) throws(BodyError)
  mutating func field(_ number: UInt8, _ values: inout [String]) throws(BodyError)
  mutating func field(_ number: UInt8, _ value: inout (some UploadMessage)?) throws(BodyError)
  mutating func field(_ number: UInt8, _ values: inout [some UploadMessage]) throws(BodyError)
}

// MARK: - Writing

extension UploadMessage {
  package static var isMeasuredByEncoding: Bool { true }

  package var encodedByteCount: Int {
    get throws(BodyError) { try encodedBytes().count }
  }

  package func encode(into output: inout OutputRawSpan) throws(BodyError) {
    try encodedBytes().encode(into: &output)
  }

  /// Throws `.interiorNUL` if a text contains U+0000.
  package func encodedBytes() throws(BodyError) -> [UInt8] {
    var writer = ProtobufWriter()
    try write(to: &writer)
    return writer.bytes
  }

  fileprivate func write(to writer: inout ProtobufWriter) throws(BodyError) {
    var message = self
    try message.code(&writer)
  }
}

extension ProtobufWriter: FieldCoder {
  package mutating func field(_ number: UInt8, _ value: inout Bool) { bool(number, value) }

  package mutating func field(_ number: UInt8, _ value: inout UInt64) { uint64(number, value) }

  package mutating func field(_ number: UInt8, _ value: inout UInt64?) {
    if let value { present(number, value) }
  }

  package mutating func field(_ number: UInt8, _ value: inout UploadState) {
    uint64(number, UInt64(bitPattern: Int64(value.rawValue)))
  }

  package mutating func field(_ number: UInt8, _ value: inout [UInt8]) { bytes(number, value) }

  package mutating func field(_ number: UInt8, _ value: inout String) throws(BodyError) {
    try string(number, value)
  }

  package mutating func field(_ number: UInt8, _ values: inout [String]) throws(BodyError) {
    for value in values { try element(number, value) }
  }

  package mutating func field(
    _ number: UInt8, _ value: inout (some UploadMessage)?
  ) throws(BodyError) {
    if let value { try message(number, value.write) }
  }

  package mutating func field(
    _ number: UInt8, _ values: inout [some UploadMessage]
  ) throws(BodyError) {
    for value in values { try message(number, value.write) }
  }
}

// MARK: - Reading

extension UploadMessage {
  /// The limit of a decoded message's memory: 67,108,864 bytes (64 MiB).
  ///
  /// A limit is needed because a short body can make many values: an empty part takes two bytes of
  /// a body, and more than a hundred in memory.
  package static var decodingMemoryLimit: Int { 67_108_864 }

  package init(decoding body: RawSpan) throws(BodyError) {
    var memory = DecodingMemory(for: Self.self)
    try self.init(decoding: body, charging: &memory)
  }

  /// Takes memory as the value grows, and throws the same errors as `ProtobufCBody` does.
  package init(decoding body: RawSpan, charging memory: inout DecodingMemory) throws(BodyError) {
    // Holds because the body and the memory outlive this call, and the reader does not.
    let bytes = unsafe body.withUnsafeBytes { unsafe $0.assumingMemoryBound(to: UInt8.self) }
    self = try unsafe withUnsafeMutablePointer(to: &memory) { (memory) throws(BodyError) in
      var fields = unsafe FieldReader(ProtobufReader(bytes, charging: memory))
      let value: Self = try fields.message()
      unsafe memory.pointee.end(fields.reader.allowance)
      return value
    }
  }
}

/// A coder that offers each field of a body to all fields of its message; unknown fields are
/// skipped.
private struct FieldReader: FieldCoder, ~Copyable {
  var reader: ProtobufReader
  /// The number of the field at the reader's position; nil once the field was read.
  private var number: UInt32?

  init(_ reader: consuming ProtobufReader) {
    self.reader = reader
  }

  /// Reads a message up to its end.
  mutating func message<Message: UploadMessage>() throws(BodyError) -> Message {
    // A growing array has room for twice as many elements, and a box or array a header.
    try reader.charge(2 * MemoryLayout<Message>.stride + 24)
    var message = Message()
    while let next = try reader.next() {
      number = next
      try message.code(&self)
      if take(next) { try reader.skip() }
    }
    return message
  }

  /// Reads the message in the current field.
  private mutating func inner<Message: UploadMessage>(
    isFirst: Bool = true
  ) throws(BodyError) -> Message {
    let outerEnd = try reader.enterMessage(isFirst: isFirst)
    let inner: Message = try message()
    reader.leaveMessage(outerEnd)
    return inner
  }

  /// Returns whether the field at the reader's position has this number; then the caller must read
  /// it.
  private mutating func take(_ number: some BinaryInteger) -> Bool {
    guard let found = self.number, found == number else { return false }
    self.number = nil
    return true
  }

  mutating func field(_ number: UInt8, _ value: inout Bool) throws(BodyError) {
    if take(number) { value = try reader.bool() }
  }

  mutating func field(_ number: UInt8, _ value: inout UInt64) throws(BodyError) {
    if take(number) { value = try reader.uint64() }
  }

  mutating func field(_ number: UInt8, _ value: inout UInt64?) throws(BodyError) {
    if take(number) { value = try reader.uint64() }
  }

  mutating func field(_ number: UInt8, _ value: inout UploadState) throws(BodyError) {
    if take(number) { value = UploadState(rawValue: try reader.int32()) }
  }

  mutating func field(_ number: UInt8, _ value: inout [UInt8]) throws(BodyError) {
    if take(number) { value = try reader.bytes() }
  }

  mutating func field(_ number: UInt8, _ value: inout String) throws(BodyError) {
    if take(number) { value = try reader.string() }
  }

  mutating func field(_ number: UInt8, _ values: inout [String]) throws(BodyError) {
    if take(number) { values.append(try reader.string()) }
  }

  mutating func field(_ number: UInt8, _ value: inout (some UploadMessage)?) throws(BodyError) {
    if take(number) { value = try inner(isFirst: value == nil) }
  }

  mutating func field(_ number: UInt8, _ values: inout [some UploadMessage]) throws(BodyError) {
    if take(number) { values.append(try inner()) }
  }
}
