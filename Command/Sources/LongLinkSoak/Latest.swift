// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The last value that was set, and when. Thread-safe.
final class Latest<Value: Sendable>: Sendable {
  private let storage = Mutex<(value: Value, time: ContinuousClock.Instant)?>(nil)

  var value: Value? { storage.withLock { $0?.value } }

  /// The value, if it was set after `time`.
  func value(since time: ContinuousClock.Instant) -> Value? {
    storage.withLock { entry in
      guard let entry, entry.time > time else { return nil }
      return entry.value
    }
  }

  func set(_ value: Value) {
    storage.withLock { $0 = (value, .now) }
  }
}
