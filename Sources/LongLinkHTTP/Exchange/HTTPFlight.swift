// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import LongLinkTransport
internal import NIOCore
internal import Synchronization

/// One request on its way over one connection, as a connection's guard sees it.
final class HTTPFlight: Sendable {
  /// The header with which a guard recognises it. The guard removes it: it never leaves.
  static let header = "longlink-flight"

  private struct State {
    var isSent = false
    /// Whether its connection had served another request before.
    var isOnUsed = false
    var isAnswered = false
    /// Whether its exchange has ended before its head was written.
    var isWithdrawn = false
    var isReadingBody = false
    var failure: HTTPFailure?
    var body: ResponseBytes?
    /// Ends the exchange of the connection that it is on.
    var abort: (@Sendable (HTTPFailure) -> Void)?
  }

  let number: UInt64
  /// When the exchange ends at the latest, from the head of its request on.
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

  /// Whether its head was written.
  var isSent: Bool { state.withLock(of: self) { $0.isSent } }

  /// Whether the request went over a connection that had served others, and nothing of an answer
  /// has come. The server may have closed the connection just then.
  var isStale: Bool { state.withLock(of: self) { $0.isSent && $0.isOnUsed && !$0.isAnswered } }

  /// Whether the connection waits for the source of its body.
  var isReadingBody: Bool {
    get { state.withLock(of: self) { $0.isReadingBody } }
    set { state.withLock(of: self) { $0.isReadingBody = newValue } }
  }

  /// Why this side has ended the request, if it has.
  var failure: HTTPFailure? { state.withLock(of: self) { $0.failure } }

  /// Records that an answer has begun.
  func noteAnswer() { state.withLock(of: self) { $0.isAnswered = true } }

  /// Records that a response has begun, whose body comes in this sequence.
  func begin(_ body: ResponseBytes) { state.withLock(of: self) { $0.body = body } }

  /// The body of the response, for its one reader.
  func takeBody() -> ResponseBytes? { state.withLock(of: self) { $0.body.take() } }

  /// Keeps its head from being written from now on, if it was not.
  func withdraw() {
    state.withLock(of: self) { if !$0.isSent { $0.isWithdrawn = true } }
  }

  /// Records that the request's head is being written to a connection. Returns false if its
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

  /// Records that the connection has nothing more to do with the request.
  func hasLeft() {
    state.withLock(of: self) { $0.abort = nil }
  }

  /// Counts bytes of the body that have left this process.
  func sent(_ count: Int) { progress?(count) }

  /// Records why the request ends, unless that was recorded before.
  func note(_ failure: HTTPFailure) {
    state.withLock(of: self) { $0.failure = $0.failure ?? failure }
  }

  /// Ends it, and the connection that it is on.
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
  /// Nobody wants the rest.
  case unwanted
  /// The response ended before the request.
  case endedEarly
  /// The compressed body is not what its encoding says.
  case damaged
  /// The body is more times larger than its compressed bytes than this, which is the limit.
  case inflated(Int)
  /// The compressed body lacks its end.
  case truncated
  /// The server has opened so many connections in a row, and let no request begin on them.
  case unusable(Int)
}

/// The flights that have not reached a connection, by number.
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
