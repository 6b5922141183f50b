// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import NIOCore

/// What a client of the port can cost at most.
enum PortLimits {
  /// The most connections, those that are refused with 503 not counted.
  static let connections = 16
  /// The most connections that wait to be refused with 503. The oldest makes room for another one.
  static let refusals = 16
  /// The most bytes of a request's head, and of its body with what is around its chunks.
  static let head = 8_192
  /// The most bytes of a request's body.
  static let body = 1_024
  /// The most bytes that are read at once.
  static let readSize = 2_048
  /// The size of the system's buffer for requests that are not read yet.
  static let receiveBuffer = 16_384
  /// The size of the system's buffer for what a client has not read.
  static let sendBuffer = 65_536
  /// The most bytes of an answer that is not streamed.
  static let answer = 65_536
  /// The most bytes of a page. A list that is longer ends early, and says what is left out.
  static let page = 61_440
  /// The bytes that are written at once.
  static let piece = 16_384
  /// The time for a whole request from the connect, or from the last answer.
  static let requestTime = TimeAmount.seconds(5)
  /// The time for the request of a connection that is refused.
  static let refusalTime = TimeAmount.seconds(1)
  /// The time in which a client has to take some of an answer.
  static let writeTime = TimeAmount.seconds(5)
  /// The time in which a client has to take a whole answer, or a piece of one that is streamed.
  static let answerTime = TimeAmount.seconds(30)
  /// The time in which a client has to close after the last answer; what it sends is dropped.
  static let discardTime = TimeAmount.seconds(1)
  /// How long an answer waits for the server's loops.
  static let loopTime = TimeAmount.seconds(1)
  /// How long before its end a wait asks the loops once more whether they run.
  static let lastPing = TimeAmount.milliseconds(100)
}
#endif
