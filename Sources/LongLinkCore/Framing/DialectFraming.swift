// SPDX-License-Identifier: Apache-2.0

/// Encodes and decodes a dialect's frames for one side: the interface between the core and
/// `LongLinkDialects`. Many connections can share one framing.
///
/// The state of each connection is in `DialectState`.
package protocol DialectFraming: AnyObject, Sendable {
  var facts: DialectFacts { get }

  // MARK: Reading

  /// Makes a decoder for the frames of the other side.
  func makeDecoder() -> any DialectDecoding

  /// The type of the request that a response belongs to, if the response's type determines it.
  func requestType(of response: DialectFrame) -> MessageType?

  // MARK: What can be sent

  /// Whether this side can send a request of this type, and its response is recognisable as one.
  func canSendRequest(_ type: MessageType, serial: UInt32) -> Bool
  /// Whether the receiver would recognise a push of this type as a push.
  func canSendPush(_ type: MessageType) -> Bool
  /// Whether a response can express this code.
  func canSendResponse(_ code: ResponseCode) -> Bool
  /// Whether one of the dialect's own codes fits into a response.
  func canSend(code: UInt32) -> Bool
  /// Whether this side can cancel a request of this type.
  func canSendCancel(of type: MessageType) -> Bool
  /// Whether a body can be sent: it contains no delimiter that the dialect forbids in bodies.
  func isAllowed(_ body: UnsafeRawBufferPointer) -> Bool
  /// The type of a response to a request of this type.
  func responseType(to type: UInt32) -> UInt64?
  /// The serial of the ping with this number, counted from 1; nil if this side sends no pings.
  func pingSerial(_ number: UInt64) -> UInt32?

  // MARK: Codes

  /// Whether a code on the wire means that a request succeeded.
  func isSuccess(_ code: UInt32) -> Bool
  /// A code on the wire as text, with its name and meaning if it is listed as an error.
  func summary(of code: UInt32) -> String

  // MARK: Writing

  /// The largest size of a frame with `count` bytes of body.
  func room(forBody count: Int) -> Int
  /// Makes room for a header, and returns where the frame begins. The caller then appends the body.
  func begin(_ span: inout OutputRawSpan) -> Int
  /// Completes the frame that begins at `start`. If the body is not allowed, removes the frame and
  /// returns false.
  func finish(_ head: FrameHead, from start: Int, in span: inout OutputRawSpan) -> Bool
  /// The position of the last checksum byte in a frame that this side has written; nil if frames
  /// have no checksum.
  func checksumPlace(inFrameOf length: Int) -> Int?
}

/// The properties of one side of a dialect, apart from the layout of its frames.
package struct DialectFacts: Sendable {
  package let name: String
  package let role: Role
  /// The largest body of a frame, in bytes.
  package let maximumBody: Int
  /// The serials of this side's requests; nil if it cannot send requests.
  package var serials: ClosedRange<UInt32>?
  package var heartbeatInterval = Duration.seconds(30)
  package var heartbeatTimeout = Duration.seconds(10)
  /// Whether this side sends pings, and whether the peer answers them.
  package var sendsPings = false
  package var pingsAreAnswered = false
  /// Whether the peer sends pings, and whether this side answers them.
  package var peerSendsPings = false
  package var answersPings = false
  /// Whether a cancel applies to all running requests of a type.
  package var cancelsByType = false
  /// The meaning of a response whose serial matches no request.
  package var unknownSerial = UnknownSerial.drop
  /// Whether responses contain codes.
  package var hasCodes = false
  /// Whether a delimiter marks the end of a frame.
  package var isDelimited = false
  /// Whether a body must not contain the delimiter.
  package var refusesDelimiter = false

  /// The meaning of a response whose serial matches no request.
  package enum UnknownSerial: Sendable {
    case violation, drop, ping
  }

  package init(name: String, role: Role, maximumBody: Int) {
    self.name = name
    self.role = role
    self.maximumBody = maximumBody
  }
}

/// A decoder that reads a dialect's frames from the front of one connection's stream.
package protocol DialectDecoding: Sendable {
  /// Whether a packet was damaged and the decoder is searching for the start of the next one.
  var isLost: Bool { get }

  /// Decodes the front of `bytes`, which begin where the last step ended and contain everything
  /// received since. An escaped body is unescaped in place.
  mutating func next(in bytes: UnsafeMutableRawBufferPointer) -> DialectStep

  /// Abandons a frame that was only partly received. Returns nil if the connection must end,
  /// because without a delimiter the start of the next frame cannot be found.
  mutating func abandonFrame() -> DialectStep?
}
