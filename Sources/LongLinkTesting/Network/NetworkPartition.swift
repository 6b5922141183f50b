// SPDX-License-Identifier: Apache-2.0

/// A partition between two groups of machines.
public struct NetworkPartition: Sendable {
  let number: Int
  let networkState: SharedNetwork

  /// Ends the partition. Bytes written during it arrive now, as if they were sent again.
  ///
  /// Machines that are also separated by another partition stay separated.
  public func heal() {
    networkState { $0.endPartition(number) }
  }
}
