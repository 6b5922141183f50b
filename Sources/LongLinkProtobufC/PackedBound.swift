// SPDX-License-Identifier: Apache-2.0

internal import CProtobufC
internal import LongLinkCLibrary

/// An upper bound on the packed size of a message.
///
/// libprotobuf-c measures every value to compute a message's size. The bound assumes the longest
/// form of numbers, so that it only has to look at fields of other types.
@usableFromInline
struct PackedBound: Sendable {
  /// A tag has at most 5 bytes; a number, or the length of a packed value, at most 10.
  private static let longest = 15

  private let description: MessageDescription
  /// The bound of all single numbers together.
  private let numbers: Int
  /// The indices of the other fields, one bit each; nil if there are more than 64 fields.
  private let others: UInt64?

  @usableFromInline
  init(_ description: MessageDescription) {
    self.description = description
    let count = description.fieldCount
    let places = (0..<count).filter { !description[$0].isSingleNumber }
    others = count > 64 ? nil : places.reduce(0) { $0 | 1 << UInt64($1) }
    numbers = (count - places.count) * PackedBound.longest
  }

  /// An upper bound on the packed size of a filled message; nil if it exceeds `limit`.
  @usableFromInline
  func bytes(of message: UnsafeRawPointer, limit: Int) -> Int? {
    guard var places = others, unsafe PackedBound.hasNoUnknownFields(message) else { return nil }
    var bound = numbers
    while places != 0, bound <= limit {
      let field = description[places.trailingZeroBitCount]
      places &= places &- 1
      let bytes = unsafe PackedBound.bytes(of: field, in: message, limit: limit - bound)
      guard let bytes else { return nil }
      bound += bytes
    }
    return bound <= limit ? bound : nil
  }

  /// The bound of a message inside another.
  private static func bytes(
    of description: MessageDescription,
    _ message: UnsafeRawPointer,
    limit: Int
  ) -> Int? {
    guard unsafe hasNoUnknownFields(message) else { return nil }
    var bound = 0
    for index in 0..<description.fieldCount {
      let field = unsafe bytes(of: description[index], in: message, limit: limit - bound)
      guard let field else { return nil }
      bound += field
    }
    return bound
  }

  private static func hasNoUnknownFields(_ message: UnsafeRawPointer) -> Bool {
    // A message begins with its base.
    unsafe message.assumingMemoryBound(to: ProtobufCMessage.self).pointee.n_unknown_fields == 0
  }

  @inline(__always)
  private static func bytes(
    of field: FieldDescription,
    in message: UnsafeRawPointer,
    limit: Int
  ) -> Int? {
    guard !field.isRepeated else {
      return unsafe bytes(ofRepeated: field, in: message, limit: limit)
    }
    guard unsafe field.isSet(in: message) else { return 0 }
    return unsafe bytes(ofValue: message + field.offset, of: field, limit: limit)
  }

  private static func bytes(
    ofRepeated field: FieldDescription,
    in message: UnsafeRawPointer,
    limit: Int
  ) -> Int? {
    let count = unsafe field.count(in: message)
    guard count > 0 else { return 0 }
    guard count <= limit / longest else { return nil }
    var bound = longest
    if case .number = field.content {
      bound += count * longest
      return bound <= limit ? bound : nil
    }
    // The array has `count` elements.
    var element = unsafe (message + field.offset).load(as: UnsafeRawPointer.self)
    for _ in 0..<count {
      let value = unsafe bytes(ofValue: element, of: field, limit: limit - bound)
      guard let value else { return nil }
      bound += value
      unsafe element += field.elementSize
    }
    return bound
  }

  @inline(__always)
  private static func bytes(
    ofValue value: UnsafeRawPointer,
    of field: FieldDescription,
    limit: Int
  ) -> Int? {
    let count: Int
    switch field.content {
    case .number:
      count = 0
    case .bytes:
      count = unsafe value.load(as: ProtobufCBinaryData.self).len
    case .string:
      let text = unsafe value.load(as: UnsafePointer<CChar>?.self)
      count = unsafe text.map { unsafe strlen($0) } ?? 0
    case .message(let inner):
      let message = unsafe value.load(as: UnsafeRawPointer?.self)
      guard let message = unsafe message else { return longest }
      guard let bound = unsafe bytes(of: inner, message, limit: limit) else { return nil }
      count = bound
    }
    return count <= limit - longest ? count + longest : nil
  }
}
