// SPDX-License-Identifier: Apache-2.0

/// What becomes of the handlers whose link ends before they have returned.
///
/// Clients and servers cancel them. Tests alone let them go on. What they return is dropped. They
/// count as memory of the link, which has ended, until then.
package enum OrphanPolicy: Sendable {
  /// Their tasks are cancelled.
  case cancelled
  /// They go on: at most this many together, with at most this many bytes of requests, and each for
  /// at most this many nanoseconds, or until its request's deadline. Other tasks are cancelled.
  case goOn(atMost: Int, holding: Int, for: Int64)

  /// The longest time that a handler goes on after its link has ended, in nanoseconds.
  var time: Int64 {
    if case .goOn(_, _, let time) = self { time } else { 0 }
  }

  /// Counts the handlers of one peer that go on although their links have ended.
  struct Count {
    private var number = 0
    private var bytes = 0

    /// Counts another handler, which holds `count` bytes. Returns false if the policy forbids it.
    mutating func takes(_ count: Int, _ policy: OrphanPolicy) -> Bool {
      guard case .goOn(let most, let mostBytes, _) = policy, number < most,
        bytes + count <= mostBytes
      else { return false }
      number += 1
      bytes += count
      return true
    }

    mutating func left(_ count: Int) {
      number -= 1
      bytes -= count
    }
  }
}
