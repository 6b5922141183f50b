// SPDX-License-Identifier: Apache-2.0

/// A range of bytes of a message in the connection's memory, valid until the next call of
/// `nextMessage` or `nextEffect`.
@usableFromInline package struct BodySlice: Equatable, Sendable {
  @usableFromInline package var start: Int
  @usableFromInline package var count: Int
  /// Whether the range refers to the joined fragments instead of the input.
  @usableFromInline package var isAssembled: Bool

  @inlinable package init(start: Int, count: Int, isAssembled: Bool = false) {
    self.start = start
    self.count = count
    self.isAssembled = isAssembled
  }

  package static let empty = BodySlice(start: 0, count: 0)
}

/// A received message, valid as long as a `BodySlice`.
///
/// It contains only a few numbers, so that passing it on is cheap.
@usableFromInline package struct Arrival: Equatable, Sendable {
  /// The start of the payload; the metadata precedes it.
  @usableFromInline var start: Int
  @usableFromInline var count: Int
  package var serial: UInt32
  /// The message type of a request or push; the code and refused bit of a response; what an item
  /// cost, in bytes of credit.
  @usableFromInline package var tag: UInt32
  @usableFromInline var metadataCount: UInt16
  /// Request, response, push, item or end.
  package var kind: FrameKind
  @usableFromInline var isAssembled: Bool
  package let hasMetadata: Bool

  /// Makes a message with this number of metadata bytes in front of its payload, if any.
  init(
    _ kind: FrameKind, serial: UInt32, tag: UInt32, metadataCount: Int? = nil, payload: BodySlice
  ) {
    self.kind = kind
    self.serial = serial
    self.tag = tag
    hasMetadata = metadataCount != nil
    self.metadataCount = UInt16(metadataCount ?? 0)
    start = payload.start
    count = payload.count
    isAssembled = payload.isAssembled
  }

  @inlinable package var payload: BodySlice {
    BodySlice(start: start, count: count, isAssembled: isAssembled)
  }

  /// The encoded metadata; nil if there is none.
  package var metadata: BodySlice? {
    guard hasMetadata else { return nil }
    let count = Int(metadataCount)
    return BodySlice(start: start - count, count: count, isAssembled: isAssembled)
  }

  /// The number of bytes of metadata and payload together.
  @inlinable package var byteCount: Int { count + Int(metadataCount) }

  package var type: MessageType { MessageType(tag: tag) }
  /// What an item cost, in bytes of credit.
  package var cost: Int { Int(tag) }
  package var code: ResponseCode { ResponseCode(wire: tag) }
  package var isRefused: Bool { tag & Wire.refusedBit != 0 }
  /// Whether the message is a response with code 200, which is never refused.
  @inlinable package var isSuccess: Bool { tag == 200 }
}
