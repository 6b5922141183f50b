// SPDX-License-Identifier: Apache-2.0

/// Two groups of machines that are cut off from each other.
public struct NetworkPartition: Sendable {
  let number: Int
  let networkState: SharedNetwork

  /// Joins them again: what was written meanwhile arrives, as if it were sent again.
  ///
  /// Machines that another partition keeps apart stay apart.
  public func heal() {
    networkState { $0.endPartition(number) }
  }
}
