// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// Identifies a registration by its slot and the slot's generation, so that events for a former
/// user of the slot can be recognised.
struct PollKey: Hashable {
  let rawValue: UInt64

  init(rawValue: UInt64) {
    self.rawValue = rawValue
  }
}

/// One descriptor's readiness.
struct PollEvent: Equatable {
  var key: PollKey
  var readiness: Readiness
}

/// A mechanism to wait for many descriptors. Level-triggered, used by one thread.
protocol Poller: AnyObject {
  /// Wakes `wait` from any thread. It is valid as long as the object lives, even after `close`.
  var waker: Waker { get }

  /// Watches a descriptor that is not watched yet. The interest is never empty: a descriptor
  /// without interest must be removed, because an error on it would be reported forever.
  func add(_ descriptor: CInt, key: PollKey, interest: Readiness) throws(Errno)
  /// Changes the interest in a watched descriptor.
  func modify(_ descriptor: CInt, key: PollKey, interest: Readiness) throws(Errno)
  /// Stops watching a descriptor, which is still open.
  func remove(_ descriptor: CInt)
  /// Waits for events until `deadline` (nil: forever; an instant in the past: not at all) and
  /// returns their number.
  ///
  /// Errors and hang-ups are reported as readiness for every interest. A wake-up ends the wait and
  /// is not an event; a wait can also end spuriously.
  func wait(until deadline: LinkInstant?) -> Int
  /// Returns one of the events of the last wait.
  func event(at index: Int) -> PollEvent
  /// Releases everything but the waker.
  func close()
}
