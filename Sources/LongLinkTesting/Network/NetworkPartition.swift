// SPDX-License-Identifier: Apache-2.0

/// A partition that ``SimulatedNetwork`` has made between two groups of machines.
public struct NetworkPartition: Sendable {
  let number: Int
  let networkState: SharedNetwork

  /// Ends the partition; does nothing if it has ended. Bytes written during it are sent again now,
  /// and arrive after the latency of their link.
  ///
  /// Machines that are also separated by another partition stay separated.
  public func heal() {
    networkState { $0.endPartition(number) }
  }
}

/// The current partitions, in the order in which they were made.
struct NetworkPartitions {
  private struct Partition {
    let number: Int
    let left: Set<Int>
    /// The other group; nil for all machines outside `left`, including machines made later.
    let right: Set<Int>?

    func separates(_ one: Int, _ other: Int) -> Bool {
      isAcross(one, other) || isAcross(other, one)
    }

    private func isAcross(_ one: Int, _ other: Int) -> Bool {
      left.contains(one) && (right?.contains(other) ?? !left.contains(other))
    }
  }

  private var partitions: [Partition] = []
  private var made = 0

  var numbers: [Int] { partitions.map(\.number) }

  /// Whether any partition separates two machines.
  func separate(_ one: Int, _ other: Int) -> Bool {
    partitions.contains { $0.separates(one, other) }
  }

  /// Cuts machines off from others, or from all others if `right` is nil; returns the number.
  mutating func add(_ left: Set<Int>, _ right: Set<Int>?) -> Int {
    made += 1
    partitions.append(Partition(number: made, left: left, right: right))
    return made
  }

  /// Ends a partition; returns false if it had ended before.
  mutating func remove(_ number: Int) -> Bool {
    guard let index = partitions.firstIndex(where: { $0.number == number }) else { return false }
    partitions.remove(at: index)
    return true
  }
}
