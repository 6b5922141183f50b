// SPDX-License-Identifier: Apache-2.0

/// Limits how many closed transports of a client or server wait for their peers at the same time.
struct LingerLimit {
  private static let most = 1_024
  private var count = 0

  mutating func begin() -> Bool {
    guard count < LingerLimit.most else { return false }
    count += 1
    return true
  }

  mutating func end() {
    count -= 1
  }
}
