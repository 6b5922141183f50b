// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// The identity of a request that runs once, with which an application can send it again.
///
/// A request with `RetryMode.once` needs no ticket to run once while its client lives. With one,
/// the application can send the same request again: after an error with delivery `sent`, and, from
/// ``bytes``, after its own restart. The server answers from the record of the first request, for
/// as long as it keeps that record, and refuses everything that could run twice.
///
/// The delivery of an error covers the earlier requests with the ticket, too: it is `sent` if one
/// of them may have run, even if the last one was never sent.
///
/// Give each request a ticket of its own, and send the same bytes with each use. The server finds
/// the record by the name of the client's principal, whatever credential proves it. For a client
/// without a principal, it finds it by `identity.client`. By default that is new for each client
/// object: for a ticket that outlives the process, read it from a file (`ClientIdentity.file(_:)`).
public final class OnceTicket: Sendable {
  private struct State {
    var once: OnceState
    /// The number of requests that use the ticket now.
    var uses = 0
    var mayHaveRun: Bool
    var isReplayed = false
  }

  /// The key under which the server keeps the answer, 1 to 255 bytes.
  public let key: [UInt8]
  private let state: Mutex<State>

  /// Makes a ticket with a key of your own, such as the number of an order; nil unless the key has
  /// 1 to 255 bytes.
  ///
  /// The first request with it asks the server where the answer is kept. A ticket that is to
  /// outlive the process has to know that before: see `LongLinkClient.ticket(key:)`.
  public init?(key: [UInt8]) {
    guard (1...Wire.onceKeyLimit).contains(key.count) else { return nil }
    self.key = key
    state = Mutex(State(once: OnceState(OnceKey(key)), mayHaveRun: false))
  }

  /// Makes a ticket of a request that has not been sent yet, and whose bytes can be kept.
  package init(_ statement: OnceStatement) {
    key = statement.key.bytes
    state = Mutex(State(once: OnceState(kept: statement), mayHaveRun: false))
  }

  /// Makes a ticket from the ``bytes`` of an earlier one, whose request counts as one that may have
  /// run; nil if they are not the bytes of a ticket.
  public init?(bytes: [UInt8]) {
    let head = 1 + KeySpace.size + 8
    guard bytes.first == 1, (head + 1...head + Wire.onceKeyLimit).contains(bytes.count),
      let space = KeySpace(bytes[1...KeySpace.size]), space != .none
    else { return nil }
    let time = bytes[(1 + KeySpace.size)..<head].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    guard time > 0 else { return nil }
    key = Array(bytes[head...])
    let statement = OnceStatement(key: OnceKey(key), space: space, time: time)
    state = Mutex(State(once: OnceState(kept: statement), mayHaveRun: true))
  }

  /// The ticket as 26 to 280 bytes, for ``init(bytes:)``; nil until it knows where the answer is
  /// kept.
  ///
  /// Once you have read the bytes, the ticket is good for that place alone: a server that keeps
  /// other answers refuses a request with it with 412, even if it has certainly not run.
  public var bytes: [UInt8]? {
    guard let kept = state.withLock({ $0.once.keep() }) else { return nil }
    let time = (0..<8).map { UInt8(truncatingIfNeeded: kept.time >> (56 - 8 * $0)) }
    return [1] + kept.space.bytes + time + key
  }

  /// Whether a request with this ticket may have run.
  public var mayHaveRun: Bool { state.withLock { $0.mayHaveRun } }

  /// Whether the last response to a request with this ticket came from the record of an earlier
  /// request with the same key, so that the handler did not run again.
  public var isReplayed: Bool { state.withLock { $0.isReplayed } }
}

extension OnceTicket: Hashable {
  /// Returns whether both tickets are the same object, whatever their keys are.
  public static func == (lhs: OnceTicket, rhs: OnceTicket) -> Bool { lhs === rhs }

  /// Hashes the identity of the object.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension OnceTicket {
  /// Notes that a request uses it.
  package func begin() {
    state.withLock { $0.uses += 1 }
  }

  /// Notes how a request that used it has ended.
  package func end(_ delivery: Delivery) {
    state.withLock { state in
      state.uses -= 1
      if !delivery.isSafeToRetry { state.mayHaveRun = true }
    }
  }

  /// Changes the state for a request. Another one that uses the ticket at the same time may run.
  package func change<Result>(
    mayHaveRun: Bool, _ body: (inout OnceState, _ mayHaveRun: Bool) -> Result
  ) -> Result {
    state.withLock { state in
      body(&state.once, mayHaveRun || state.mayHaveRun || state.uses > 1)
    }
  }

  /// Notes whether a response was a replay.
  package func answered(isReplayed: Bool) {
    state.withLock { $0.isReplayed = isReplayed }
  }
}
