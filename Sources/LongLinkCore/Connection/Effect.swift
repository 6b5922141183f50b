// SPDX-License-Identifier: Apache-2.0

/// A stretch of a message in the connection's memory, good until the connection is asked for what
/// comes next.
package struct BodySlice: Equatable, Sendable {
  package var start: Int
  package var count: Int
  /// Whether it stands in the joined fragments instead of the input.
  package var isAssembled: Bool

  package init(start: Int, count: Int, isAssembled: Bool = false) {
    self.start = start
    self.count = count
    self.isAssembled = isAssembled
  }

  package static let empty = BodySlice(start: 0, count: 0)
}

/// A message as it arrived, where it stands as a `BodySlice` does.
///
/// One is handed over for every message. It holds numbers alone, and few of them, so that this is
/// cheap.
package struct Arrival: Equatable, Sendable {
  /// Where the payload is; the metadata stands in front of it.
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

  /// A message with so many bytes of metadata in front of its payload, where it has any.
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

  /// The encoded metadata; nil where there is none.
  package var metadata: BodySlice? {
    guard hasMetadata else { return nil }
    let count = Int(metadataCount)
    return BodySlice(start: start - count, count: count, isAssembled: isAssembled)
  }

  /// The bytes of metadata and payload together.
  package var byteCount: Int { count + Int(metadataCount) }

  package var type: MessageType { MessageType(tag: tag) }
  package var code: ResponseCode { ResponseCode(rawValue: tag & Wire.codeMask) }
  package var isRefused: Bool { tag & Wire.refusedBit != 0 }
}

/// What a connection asks of its link, one thing each, in order.
package enum Effect: Equatable, Sendable {
  /// Hand the owner a message that came behind other effects.
  case message(Arrival)
  /// Tell the owner.
  case tell(LinkNews)
  /// Send the end of the stream, now that all is written.
  case shutDownWriting
  /// Close the stream; nothing follows.
  indirect case close(CloseReason)

  /// Whether it hands on something that the peer sent.
  var isDelivery: Bool {
    switch self {
    case .message, .tell(.cancel), .tell(.collect): true
    case .tell, .shutDownWriting, .close: false
    }
  }
}

/// What the owner of a link hears of it, messages and its end apart.
package enum LinkNews: Equatable, Sendable {
  /// The handshake is complete, or the peer does without one.
  case established
  /// The peer wants no answer to its request any more: stop the work on it.
  case cancel(serial: UInt32)
  /// A response comes in fragments: call `abandonResponse` unless somebody waits for it.
  case collect(serial: UInt32)
  /// An asked-for ping was answered after this many nanoseconds.
  case ponged(id: UInt64, roundTrip: Int64)
  /// A byte has come in answer to a ping, or to what was written before it, after neither side had
  /// said anything for this long, in nanoseconds.
  case heartbeatAnswered(silence: Int64)
  /// A request that was kept back has begun to leave.
  case began(serial: UInt32, at: UInt64, ordinal: UInt64)
  /// A request that was kept back has been encoded to its end.
  case finished(serial: UInt32)
  /// So much has left that what waits for room may be sent.
  case resumeSending
  /// A damaged packet was dropped, for this reason; the connection goes on.
  case damaged(Violation)
  /// The peer is going away: begin nothing new here.
  indirect case peerLeaving(GoAway)
  /// The connection is lost to all exchanges; its end follows when the peer has been told.
  indirect case abandon(CloseReason)
}
