// SPDX-License-Identifier: Apache-2.0

import LongLink
import Synchronization

/// The stretches of time in which a client is connected and makes no other connection, so that all
/// that comes to it comes over one connection.
final class SoakStretches: Sendable {
  private struct Stretch {
    var state = ConnectionState.idle
    var number: UInt32 = 0
    var begin = ContinuousClock.now
  }

  private let latest = Mutex(Stretch())

  /// Begins a stretch, because the client's state has changed.
  func begin(in state: ConnectionState) {
    latest.withLock { latest in
      latest = Stretch(state: state, number: latest.number + 1)
    }
  }

  /// The number of the stretch; nil if the client may still get what was sent over an earlier
  /// connection, some of which may have been lost with it.
  func number(in state: ConnectionState) -> UInt32? {
    guard case .connected = state else { return nil }
    return latest.withLock { latest in
      let isSettled = ContinuousClock.now - latest.begin >= SoakTiming.moving
      return latest.state == state && isSettled ? latest.number : nil
    }
  }
}
