// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Records numbered pushes: each has to arrive at most once, and in order on its link.
final class PushLedger: Sendable {
  private struct State {
    var sent: [UInt64: Int] = [:]
    var arrived: Set<UInt64> = []
    var last: [String: UInt64] = [:]
    var broken: [(OraclePromise, String)] = []
  }

  private let state = Mutex(State())

  /// Records that a push is sent. Numbers increase in the order of sending.
  func sent(_ number: UInt64, size: Int) {
    state.withLock { $0.sent[number] = size }
  }

  /// Records that a push has arrived. `link` is any unique name of the link.
  func arrived(_ number: UInt64, size: Int, on link: String) {
    state.withLock { state in
      if state.sent[number] != size {
        state.broken.append((.ownAnswers, "push \(number) was never sent with \(size) bytes"))
      }
      if !state.arrived.insert(number).inserted {
        state.broken.append((.endsOnce, "push \(number) arrived twice"))
      }
      if let last = state.last[link], last > number {
        state.broken.append((.orderKept, "push \(number) arrived after push \(last) on \(link)"))
      }
      state.last[link] = number
    }
  }

  /// Records that a push arrived with a body that is not one of the scenario's.
  func arrivedDamaged(_ what: String) {
    state.withLock { $0.broken.append((.ownAnswers, what)) }
  }

  var broken: [(promise: OraclePromise, detail: String)] {
    state.withLock { $0.broken.map { (promise: $0.0, detail: $0.1) } }
  }
}
