// SPDX-License-Identifier: Apache-2.0

/// What a link tells its owner besides messages and its end, grouped by who acts on it.
package enum LinkNews: Equatable, Sendable {
  case life(LifeNews)
  case request(RequestNews)
  case stream(StreamNews, serial: UInt32)
  case observed(LinkObservation)
  /// The client has shown who it is, in its greeting or to renew its credential: call `admit` or
  /// `turnAway`. Only a server hears it.
  case identify
  /// The peer cancelled its request: stop the work on it.
  case cancel(InboundID)
  /// The outgoing bytes fell below the low-water mark: waiting messages can be sent.
  case resumeSending
}

/// The life of a connection, which its owner follows.
package enum LifeNews: Equatable, Sendable {
  /// The handshake is complete, or the peer skipped it.
  case established
  /// The peer is going away: start no new requests here.
  indirect case peerLeaving(GoAway)
  /// The server has answered this client's renewal.
  indirect case renewed(RenewalAnswer)
  /// No exchange can complete any more. The close follows when the peer has been notified.
  indirect case abandon(CloseReason)
}

/// What concerns the requests of this side.
package enum RequestNews: Equatable, Sendable {
  /// A response arrives in fragments: call `abandonResponse` unless a caller waits for it.
  case collect(serial: UInt32)
  /// A queued request has begun to be encoded.
  case began(serial: UInt32, at: UInt64, ordinal: UInt64)
  /// A queued request has been encoded completely.
  case finished(serial: UInt32)
  /// A frame of a stream was dropped whose serial belongs to this side: call `rejectStray` if a
  /// request without a stream waits for a response with this serial.
  case stray(FrameKind, serial: UInt32)
}

/// What concerns the side that a stream belongs to: its requests, or its handlers.
package enum StreamNews: Equatable, Sendable {
  /// The item that waited to be sent has been encoded completely: the next one can be sent.
  case itemSent
  /// The peer gets no credit for the rest of an item, because whole items were not taken: call
  /// `lentItems` once the application holds all of them.
  case stuck
  /// The rest of an item that is arriving exceeds the limit of all windows: end the exchange.
  case overLimit
}

/// An observation of the peer or the path, which changes nothing on the connection.
package enum LinkObservation: Equatable, Sendable {
  /// A ping was answered after this many nanoseconds.
  case ponged(id: UInt64, roundTrip: Int64)
  /// A suspicion ended because bytes arrived. `silence` is the time in nanoseconds for which
  /// neither side had sent anything before the ping, or before data written ahead of it.
  case heartbeatAnswered(silence: Int64)
  /// A damaged packet was dropped for this reason; the connection continues.
  case damaged(Violation)
  /// The connection itself refused a request of the peer; only with `reportsRefusals`.
  case refused(type: UInt32, serial: UInt32, Refusal)
}
