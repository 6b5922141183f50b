// SPDX-License-Identifier: Apache-2.0

import Histogram
import LongLink
import Synchronization

/// The results of the requests so far. Thread-safe.
final class BenchTally: Sendable {
  struct Counts: Sendable {
    /// Requests that the server answered with 200.
    var answered: UInt64 = 0
    /// Failed requests, by error.
    var failures: [String: UInt64] = [:]
    /// The first of their errors.
    var firstFailure: LongLinkError?
    /// Requests that were due but not sent before the end.
    var unsent: UInt64 = 0
    /// The times of requests that got a response or passed their deadline, and of the unsent.
    var times = Histogram<UInt64>(numberOfSignificantValueDigits: .three)

    var failed: UInt64 { failures.values.reduce(0, +) }
  }

  private let counts = Mutex(Counts())

  var now: Counts { counts.withLock { $0 } }

  func answered(after time: Duration) {
    counts.withLock { counts in
      counts.answered += 1
      _ = counts.times.record(time.wholeNanoseconds)
    }
  }

  func failed(_ error: LongLinkError, after time: Duration) {
    counts.withLock { counts in
      counts.failures[BenchTally.name(of: error), default: 0] += 1
      if counts.firstFailure == nil { counts.firstFailure = error }
      // Other failures say nothing about response times.
      if error.code == .rejected || error.code == .deadlineExceeded {
        _ = counts.times.record(time.wholeNanoseconds)
      }
    }
  }

  func notSent(since time: Duration) {
    counts.withLock { counts in
      counts.unsent += 1
      _ = counts.times.record(time.wholeNanoseconds)
    }
  }

  private static func name(of error: LongLinkError) -> String {
    guard let code = error.response else { return "\(error.code)" }
    return "\(error.code) with \(code.rawValue)"
  }
}

extension Duration {
  /// Nanoseconds; 0 where it is negative.
  fileprivate var wholeNanoseconds: UInt64 {
    self < .zero ? 0 : UInt64(self / .nanoseconds(1))
  }
}
