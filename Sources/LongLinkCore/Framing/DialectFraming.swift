// SPDX-License-Identifier: Apache-2.0

/// A protocol with frames of its own, as one side of a connection speaks it: the seam between the
/// core and `LongLinkDialects`. Many connections may share one.
///
/// The core keeps what a connection needs besides: see `DialectState`.
package protocol DialectFraming: AnyObject, Sendable {
  var facts: DialectFacts { get }

  // MARK: Reading

  /// Reads the frames of the other side.
  func makeDecoder() -> any DialectDecoding

  /// The type of the request that a response is to, as far as its own tells.
  func requestType(of response: DialectFrame) -> MessageType?

  // MARK: What can be said

  /// Whether this side may send a request of this type, and its response would be taken for one.
  func canSendRequest(_ type: MessageType, serial: UInt32) -> Bool
  /// Whether a push of this type would be taken for one.
  func canSendPush(_ type: MessageType) -> Bool
  /// Whether a response can say this code.
  func canSendResponse(_ code: ResponseCode) -> Bool
  /// Whether a code of the dialect's own fits into a response.
  func canSend(code: UInt32) -> Bool
  /// Whether this side can cancel a request of this type.
  func canSendCancel(of type: MessageType) -> Bool
  /// Whether a body may be sent: it holds no delimiter that the dialect refuses within it.
  func isAllowed(_ body: UnsafeRawBufferPointer) -> Bool
  /// What a response to a request of this type has as its own.
  func responseType(to type: UInt32) -> UInt64?
  /// The serial of the ping with this number, from 1; nil where this side sends none.
  func pingSerial(_ number: UInt64) -> UInt32?

  // MARK: Codes

  /// Whether a code on the wire says that a request succeeded.
  func isSuccess(_ code: UInt32) -> Bool
  /// The meaning of a code on the wire that is listed as an error.
  func error(_ code: UInt32) -> DialectErrorCode?

  // MARK: Writing

  /// The most bytes that a frame with so many bytes of body can have.
  func room(forBody count: Int) -> Int
  /// Makes room for a header, and returns where the frame begins; its body is to be appended.
  func begin(_ span: inout OutputRawSpan) -> Int
  /// Completes the frame that begins at `start`. False, with nothing of the frame left there, when
  /// the body is not allowed.
  func finish(_ head: FrameHead, from start: Int, in span: inout OutputRawSpan) -> Bool
  /// Where the last byte of the checksum stands in a frame that this side has written; nil where
  /// there is none.
  func checksumPlace(inFrameOf length: Int) -> Int?
}

/// What one side of a dialect can do, whatever its bytes.
package struct DialectFacts: Sendable {
  package let name: String
  package let role: Role
  /// The largest body of a frame, in bytes.
  package let maximumBody: Int
  /// The serials of this side's requests; nil where it may not ask.
  package var serials: ClosedRange<UInt32>?
  package var heartbeatInterval = Duration.seconds(30)
  package var heartbeatTimeout = Duration.seconds(10)
  /// Whether this side sends pings, and whether these are answered.
  package var sendsPings = false
  package var pingsAreAnswered = false
  /// Whether the peer sends pings, and whether this side answers them.
  package var peerSendsPings = false
  package var answersPings = false
  /// Whether a cancel means all running requests of a type.
  package var cancelsByType = false
  /// What a response means whose serial no request has.
  package var unknownSerial = UnknownSerial.drop
  /// Whether responses bear codes.
  package var hasCodes = false
  /// Whether the end of a frame is found by a delimiter.
  package var isDelimited = false
  /// Whether a body must not hold the delimiter.
  package var refusesDelimiter = false

  /// What a response means whose serial no request has.
  package enum UnknownSerial: Sendable {
    case violation, drop, ping
  }

  package init(name: String, role: Role, maximumBody: Int) {
    self.name = name
    self.role = role
    self.maximumBody = maximumBody
  }
}

/// Reads the frames of a dialect from the front of one connection's stream.
package protocol DialectDecoding: Sendable {
  /// Whether a packet was damaged and the beginning of the next one is looked for.
  var isLost: Bool { get }

  /// What stands at the front of `bytes`, which begin where the last step ended and hold all that
  /// has come since. An escaped body is unescaped in place.
  mutating func next(in bytes: UnsafeMutableRawBufferPointer) -> DialectStep

  /// Gives up the frame of which bytes have come, and whose end does not come. Nil where that is
  /// the end of the connection, since only a delimiter could tell where the next frame begins.
  mutating func abandonFrame() -> DialectStep?
}
