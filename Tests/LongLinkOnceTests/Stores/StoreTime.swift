// SPDX-License-Identifier: Apache-2.0

import LongLinkOnceStore
import Synchronization

/// A clock that tests set.
final class StoreTime: Sendable {
  private let time = Atomic<Int64>(1)

  func pass(_ duration: Duration) {
    time.add(Int64(duration / .milliseconds(1)), ordering: .relaxed)
  }

  func store(maxRecords: Int, maxBytes: Int = 64 << 20) -> MemoryOnceStore {
    MemoryOnceStore(maxRecords: maxRecords, maxBytes: maxBytes, name: [1, 2, 3]) {
      self.time.load(ordering: .relaxed)
    }
  }
}
