// SPDX-License-Identifier: Apache-2.0

/// Two groups of machines that are cut off from each other.
public struct NetworkPartition: Sendable {
  let number: Int
  let world: SharedWorld

  /// Joins them again: what was written meanwhile arrives, as if it were sent again.
  ///
  /// Machines that another partition keeps apart stay apart.
  public func heal() {
    world { $0.endPartition(number) }
  }
}
