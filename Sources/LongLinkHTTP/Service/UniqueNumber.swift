// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import Synchronization

/// Makes numbers that are unique in this process.
enum UniqueNumber {
  private static let last = Atomic<UInt64>(0)

  static func next() -> UInt64 { last.add(1, ordering: .relaxed).newValue }
}
#endif
