// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A bound on something that all requests of the server hold together.
final class Allowance: Sendable {
  private let most: Int
  private let taken = Mutex(0)

  init(of most: Int) {
    self.most = most
  }

  /// Takes so much of it; returns false if not so much is left.
  func take(_ amount: Int) -> Bool {
    taken.withLock { taken in
      guard amount <= most - taken else { return false }
      taken += amount
      return true
    }
  }

  func giveBack(_ amount: Int) {
    taken.withLock { $0 -= amount }
  }
}
