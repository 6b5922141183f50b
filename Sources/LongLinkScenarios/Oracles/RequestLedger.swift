// SPDX-License-Identifier: Apache-2.0

package import LongLinkDriver
internal import LongLinkCore
internal import Synchronization

/// Records when requests are made, run and end. Any thread may use it.
///
/// An ``Oracle`` has one. Give each request a unique key in its body. Call `asked` when it is made,
/// `ran` first in the handler, `returned` last, and `ended` when the caller gets the result.
package final class RequestLedger: Sendable {
  private struct Entry {
    var mayRunAgain = false
    var isStream = false
    /// The client of an ordered request; nil for a request without an order.
    var lane: String?
    var asked: LinkInstant?
    var deadline: LinkInstant?
    var ended: LinkInstant?
    var runs = 0
    var hasReturned = false
    var end: End?
  }

  private enum End {
    case success
    case failure(LongLinkError)
    /// The caller's process has crashed, or it has given the stream up: there is no result.
    case forgotten
  }

  private struct State {
    var entries: [UInt64: Entry] = [:]
    var early: [(OraclePromise, String)] = []
    /// For each lane, the latest-made ordered request that has run.
    var lastRuns: [String: (order: Int, key: UInt64)] = [:]
    var orders: [UInt64: Int] = [:]
  }

  private let state = Mutex(State())
  private let now: @Sendable () -> LinkInstant

  /// Makes an empty ledger with the simulation's clock.
  init(now: @escaping @Sendable () -> LinkInstant) {
    self.now = now
  }

  /// Records that a request is made.
  ///
  /// `deadline` is the request's timeout; nil for none. `mayRunAgain` is whether the request is
  /// marked idempotent. `lane` is the client of an ordered request; nil for other requests. Record
  /// ordered requests in the order in which they are made. `isStream` is whether the request
  /// carries items: then its caller may miss its result.
  package func asked(
    _ key: UInt64, deadline: Duration? = nil, mayRunAgain: Bool = false,
    inOrderOf lane: String? = nil, isStream: Bool = false
  ) {
    let now = now()
    state.withLock { state in
      if state.entries[key]?.asked != nil {
        state.early.append((.endsOnce, "request \(key) was made twice"))
      }
      var entry = state.entries[key] ?? Entry()
      entry.asked = now
      entry.deadline = deadline.map { now.advanced(by: $0) }
      entry.mayRunAgain = mayRunAgain
      entry.lane = lane
      entry.isStream = isStream
      if lane != nil { state.orders[key] = state.orders.count }
      state.entries[key] = entry
    }
  }

  /// Records that the handler of a request runs.
  package func ran(_ key: UInt64) {
    state.withLock { state in
      var entry = state.entries[key] ?? Entry()
      entry.runs += 1
      state.entries[key] = entry
      guard let lane = entry.lane, let order = state.orders[key] else { return }
      if let last = state.lastRuns[lane], last.order > order {
        // A request that has ended for its caller may still arrive on its old connection.
        if entry.end == nil {
          state.early.append((.orderKept, "request \(key) ran after the later \(last.key)"))
        }
      } else {
        state.lastRuns[lane] = (order, key)
      }
    }
  }

  /// Records that the handler of a request has returned or thrown, and was not cancelled before.
  package func returned(_ key: UInt64) {
    state.withLock { $0.entries[key, default: Entry()].hasReturned = true }
  }

  /// Records how a request ended. `isOwnAnswer` is whether a success has the right body.
  package func ended(
    _ key: UInt64,
    _ result: Result<[UInt8], LongLinkError>,
    isOwnAnswer: Bool = true
  ) {
    let now = now()
    state.withLock { state in
      state.entries[key, default: Entry()].ended = now
      if state.entries[key]?.end != nil {
        state.early.append((.endsOnce, "request \(key) ended twice, now with \(result.word)"))
      }
      if !isOwnAnswer {
        state.early.append((.ownAnswers, "request \(key) got the response of another request"))
      }
      switch result {
      case .success: state.entries[key, default: Entry()].end = .success
      case .failure(let error):
        state.entries[key, default: Entry()].end = .failure(error)
        // Checked now, because the handler may still return later.
        if error.delivery == .answered, state.entries[key]?.hasReturned != true {
          state.early.append(
            (.truthfulDelivery, "the handler of request \(key) has not answered: \(error)"))
        }
      }
    }
  }

  /// Records that the caller's process has crashed, or that the caller has given up a stream, so
  /// that the request has no result.
  package func forgot(_ key: UInt64) {
    state.withLock { $0.entries[key]?.end = .forgotten }
  }

  /// The number of requests made.
  package var askedCount: Int {
    state.withLock { $0.entries.values.count { $0.asked != nil } }
  }

  /// The number of requests that have ended.
  package var endedCount: Int {
    state.withLock { $0.entries.values.count { $0.end != nil } }
  }

  /// The number of requests that have succeeded.
  package var succeededCount: Int {
    state.withLock { $0.entries.values.count { if case .success = $0.end { true } else { false } } }
  }

  /// The number of requests and streams that ended because their connection's credential had
  /// expired.
  var expiredCount: Int {
    state.withLock {
      $0.entries.values.count { entry in
        guard case .failure(let error) = entry.end else { return false }
        return error.closeReason == .goneAway(.unauthenticated) && error.code != .notAccepted
      }
    }
  }

  /// The number of streams whose callers have not seen a success, though there may have been one.
  var unseenCount: Int {
    state.withLock {
      $0.entries.values.count { entry in
        if case .success = entry.end { false } else { entry.isStream }
      }
    }
  }

  /// The number of times that handlers ran.
  package var runCount: Int {
    state.withLock { $0.entries.values.reduce(0) { $0 + $1.runs } }
  }

  /// The broken promises. Read it after every handler has ended.
  package var broken: [(promise: OraclePromise, detail: String)] {
    state.withLock { state in
      var broken = state.early.map { (promise: $0.0, detail: $0.1) }
      for key in state.entries.keys.sorted() {
        guard let entry = state.entries[key] else { continue }
        broken += Self.check(key, entry).map { (promise: $0.0, detail: $0.1) }
      }
      return broken
    }
  }

  /// The requests that ended too late, with the times at which they were made and ended.
  var late: [(key: UInt64, asked: LinkInstant, ended: LinkInstant)] {
    state.withLock { state in
      state.entries.keys.sorted().compactMap { key in
        guard let entry = state.entries[key], let asked = entry.asked, let ended = entry.ended,
          let deadline = entry.deadline, ended > deadline + Self.lateness
        else { return nil }
        return (key, asked, ended)
      }
    }
  }

  /// How long after its deadline a request may end: the precision of timers.
  static let lateness: Int64 = 50_000_000

  private static func check(_ key: UInt64, _ entry: Entry) -> [(OraclePromise, String)] {
    guard entry.asked != nil else {
      return [(.ownAnswers, "request \(key) ran and was never made")]
    }
    guard let end = entry.end else { return [(.endsOnce, "request \(key) has not ended")] }
    var broken: [(OraclePromise, String)] = []
    if entry.runs > 1, !entry.mayRunAgain {
      broken.append((.truthfulDelivery, "request \(key) ran \(entry.runs) times"))
    }
    switch end {
    case .success where entry.runs == 0:
      broken.append((.truthfulDelivery, "request \(key) succeeded and never ran"))
    case .success:
      break
    case .failure(let error) where error.delivery.isSafeToRetry && entry.runs > 0:
      broken.append(
        (.truthfulDelivery, "request \(key) was reported safe to retry, and ran: \(error)"))
    case .failure, .forgotten:
      break
    }
    return broken
  }
}

extension Result where Success == [UInt8], Failure == LongLinkError {
  /// The outcome in a few words.
  var word: String {
    switch self {
    case .success(let body): "success, \(body.count) bytes"
    case .failure(let error): "\(error)"
    }
  }
}
