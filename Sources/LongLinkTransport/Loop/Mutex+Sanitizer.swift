// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkPOSIX
package import Synchronization

extension Mutex where Value: Sendable {
  /// The same as `withLock`, for a mutex that is part of the object `owner`.
  ///
  /// The thread sanitizer does not see what the standard library does when two threads meet at a
  /// mutex, and would report whatever it protects. This tells it.
  package borrowing func withLock<R: Sendable>(
    of owner: AnyObject,
    _ body: (inout Value) -> R
  ) -> R {
    let lock = unsafe Unmanaged.passUnretained(owner).toOpaque()
    return withLock { value in
      unsafe cll_sanitizer_locked(lock)
      defer { unsafe cll_sanitizer_unlocks(lock) }
      return body(&value)
    }
  }
}
