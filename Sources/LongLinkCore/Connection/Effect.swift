// SPDX-License-Identifier: Apache-2.0

/// A range of bytes of a message in the connection's memory, valid until the next call of
/// `nextMessage` or `nextEffect`.
package struct BodySlice: Equatable, Sendable {
  package var start: Int
  package var count: Int
  /// Whether it refers to the joined fragments instead of the input.
  package var isAssembled: Bool

  package init(start: Int, count: Int, isAssembled: Bool = false) {
    self.start = start
    self.count = count
    self.isAssembled = isAssembled
  }

  package static let empty = BodySlice(start: 0, count: 0)
}

/// A received message, valid as long as a `BodySlice`.
///
/// One is passed on for every message. It contains only a few numbers, so that this is cheap.
package struct Arrival: Equatable, Sendable {
  /// The start of the payload; the metadata precedes it.
  private var start: Int
  private var count: Int
  package var serial: UInt32
  /// The message type of a request or push; the code and refused bit of a response.
  package var tag: UInt32
  private var metadataCount: UInt16
  /// Request, response or push.
  package var kind: FrameKind
  private var isAssembled: Bool
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

  package var payload: BodySlice {
    BodySlice(start: start, count: count, isAssembled: isAssembled)
  }

  /// The encoded metadata; nil if there is none.
  package var metadata: BodySlice? {
    guard hasMetadata else { return nil }
    let count = Int(metadataCount)
    return BodySlice(start: start - count, count: count, isAssembled: isAssembled)
  }

  /// The number of bytes of metadata and payload together.
  package var byteCount: Int { count + Int(metadataCount) }

  package var type: MessageType { MessageType(tag: tag) }
  package var code: ResponseCode { ResponseCode(rawValue: tag & Wire.codeMask) }
  package var isRefused: Bool { tag & Wire.refusedBit != 0 }
}

/// An action that a connection asks its link to perform. Effects are in order.
package enum Effect: Equatable, Sendable {
  /// Pass a message that follows other effects to the owner.
  case message(Arrival)
  /// Notify the owner.
  case report(LinkNews)
  /// End the stream in this direction, now that everything is written.
  case shutDownWriting
  /// Close the stream. No effects follow.
  indirect case close(CloseReason)

  /// Whether it passes on something that the peer sent.
  var isDelivery: Bool {
    switch self {
    case .message, .report(.cancel), .report(.collect): true
    case .report, .shutDownWriting, .close: false
    }
  }
}

/// A notification to the owner of a link, other than messages and the end of the connection.
package enum LinkNews: Equatable, Sendable {
  /// The handshake is complete, or the peer skipped it.
  case established
  /// The peer cancelled its request: stop the work on it.
  case cancel(serial: UInt32)
  /// A response arrives in fragments: call `abandonResponse` unless a caller waits for it.
  case collect(serial: UInt32)
  /// A ping was answered after this many nanoseconds.
  case ponged(id: UInt64, roundTrip: Int64)
  /// A suspicion ended because bytes arrived. `silence` is the time in nanoseconds for which
  /// neither side had sent anything before the ping, or before data written ahead of it.
  case heartbeatAnswered(silence: Int64)
  /// A queued request has begun to be encoded.
  case began(serial: UInt32, at: UInt64, ordinal: UInt64)
  /// A queued request has been encoded completely.
  case finished(serial: UInt32)
  /// The outgoing bytes fell below the low-water mark: waiting messages can be sent.
  case resumeSending
  /// A damaged packet was dropped for this reason; the connection continues.
  case damaged(Violation)
  /// The peer is going away: start no new requests here.
  indirect case peerLeaving(GoAway)
  /// No exchange can complete any more. The close follows when the peer has been notified.
  indirect case abandon(CloseReason)
}
