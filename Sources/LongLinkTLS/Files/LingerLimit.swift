// SPDX-License-Identifier: Apache-2.0

/// The limit of closed transports that still end their connections.
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
