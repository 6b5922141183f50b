// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import LongLinkTransport
internal import NIOCore
internal import Synchronization

/// One request on its way over one connection. The exchange and the connection's guard share it.
final class HTTPFlight: Sendable {
  /// The header by which a guard recognises the flight. The guard removes it: it never leaves.
  static let header = "longlink-flight"

  private struct State {
    var isSent = false
    /// Whether the connection had served another request before.
    var isOnUsed = false
    var isAnswered = false
    /// Whether the exchange ended before the request's head was written.
    var isWithdrawn = false
    var isReadingBody = false
    var failure: HTTPFailure?
    var body: ResponseBytes?
    /// Closes the connection that the request is on; nil while there is none.
    var abort: (@Sendable (HTTPFailure) -> Void)?
  }

  let number: UInt64
  /// The deadline of the exchange, which holds once the request's head is written.
  let deadline: NIODeadline
  private let state = Mutex(State())
  private let progress: (@Sendable (_ sent: Int) -> Void)?

  init(
    _ number: UInt64, deadline: NIODeadline, progress: (@Sendable (Int) -> Void)?
  ) {
    self.number = number
    self.deadline = deadline
    self.progress = progress
  }

  /// Whether the request's head was written.
  var isSent: Bool { state.withLock(of: self) { $0.isSent } }

  /// Whether the request went over a connection that had served others, and no byte of an answer
  /// has come. The server may have closed the connection just before.
  var isStale: Bool { state.withLock(of: self) { $0.isSent && $0.isOnUsed && !$0.isAnswered } }

  /// Whether the connection waits for the next piece of the request's body.
  var isReadingBody: Bool {
    get { state.withLock(of: self) { $0.isReadingBody } }
    set { state.withLock(of: self) { $0.isReadingBody = newValue } }
  }

  /// Why this side has ended the request; nil if it has not.
  var failure: HTTPFailure? { state.withLock(of: self) { $0.failure } }

  /// Records that an answer has begun to arrive.
  func noteAnswer() { state.withLock(of: self) { $0.isAnswered = true } }

  /// Records that a response has begun; `body` yields the bytes of its body.
  func begin(_ body: ResponseBytes) { state.withLock(of: self) { $0.body = body } }

  /// Takes the body of the response, for its only reader; nil if it was taken.
  func takeBody() -> ResponseBytes? { state.withLock(of: self) { $0.body.take() } }

  /// Prevents the request's head from being written, if it was not written yet.
  func withdraw() {
    state.withLock(of: self) { if !$0.isSent { $0.isWithdrawn = true } }
  }

  /// Records that the request's head is about to be written to a connection. Returns false if the
  /// exchange has ended.
  func willSend(
    onUsed isOnUsed: Bool, _ abort: @escaping @Sendable (HTTPFailure) -> Void
  ) -> Bool {
    state.withLock(of: self) { state in
      guard state.failure == nil, !state.isWithdrawn else { return false }
      state.isSent = true
      state.isOnUsed = isOnUsed
      state.abort = abort
      return true
    }
  }

  /// Records that the connection is finished with the request.
  func hasLeft() {
    state.withLock(of: self) { $0.abort = nil }
  }

  /// Counts bytes of the body that have left this process.
  func sent(_ count: Int) { progress?(count) }

  /// Records why the request ends, unless that was recorded before.
  func note(_ failure: HTTPFailure) {
    state.withLock(of: self) { $0.failure = $0.failure ?? failure }
  }

  /// Ends the request with a failure, and closes its connection.
  func fail(_ failure: HTTPFailure) {
    let abort = state.withLock(of: self) { state in
      state.failure = state.failure ?? failure
      return state.abort.take()
    }
    abort?(failure)
  }
}

/// Why this side has ended an exchange.
enum HTTPFailure: Error, Hashable {
  /// The server was silent for too long.
  case silence
  /// The deadline passed.
  case deadline
  /// The head of the response is larger than its bound.
  case headTooLarge
  /// There were too many interim responses.
  case tooManyInterim
  /// The rest of the response is not wanted.
  case unwanted
  /// The response ended before the request was sent.
  case endedEarly
  /// The compressed body does not conform to its encoding.
  case damaged
  /// The body is more than this many times larger than its compressed bytes.
  case inflated(Int)
  /// The compressed body lacks its end.
  case truncated
  /// The server has opened this many connections in a row, and allowed no request on them.
  case unusable(Int)
}

/// The flights that are not on a connection yet, by number.
final class FlightTable: Sendable {
  private struct State {
    var flights: [UInt64: HTTPFlight] = [:]
    var last: UInt64 = 0
  }

  private let state = Mutex(State())

  func add(
    deadline: NIODeadline = .distantFuture, progress: (@Sendable (Int) -> Void)?
  ) -> HTTPFlight {
    state.withLock(of: self) { state in
      state.last += 1
      let flight = HTTPFlight(state.last, deadline: deadline, progress: progress)
      state.flights[state.last] = flight
      return flight
    }
  }

  func take(_ number: UInt64) -> HTTPFlight? {
    state.withLock(of: self) { $0.flights.removeValue(forKey: number) }
  }
}
#endif
