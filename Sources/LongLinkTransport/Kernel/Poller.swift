// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// Names a registration: a slot and the generation that it is used for, so that an event that was
/// meant for a slot's former user is told apart.
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

/// A way to wait for many descriptors at once. Level-triggered, used by one thread.
protocol Poller: AnyObject {
  /// Wakes `wait`, from any thread and for as long as the object lives, also after `close`.
  var waker: Waker { get }

  /// Watches a descriptor that is not watched yet. The interest is never empty: a descriptor of
  /// no interest is removed, since an error on it would be reported for ever.
  func add(_ descriptor: CInt, key: PollKey, interest: Readiness) throws(Errno)
  /// Changes the interest in a watched descriptor.
  func modify(_ descriptor: CInt, key: PollKey, interest: Readiness) throws(Errno)
  /// Stops watching a descriptor, which is still open.
  func remove(_ descriptor: CInt)
  /// Waits for events until `deadline` at the latest (nil: for ever; an instant in the past: not at
  /// all) and returns their number.
  ///
  /// Errors and hang-ups are reported as whatever is of interest. A wake-up ends the wait and
  /// is no event; a wait may also end for nothing.
  func wait(until deadline: LinkInstant?) -> Int
  /// One of the events of the last wait.
  func event(at index: Int) -> PollEvent
  /// Releases everything but the waker.
  func close()
}
