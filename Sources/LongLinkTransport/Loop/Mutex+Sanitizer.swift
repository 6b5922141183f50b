// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkSystem
package import Synchronization

extension Mutex where Value: ~Copyable & Sendable {
  /// Like `withLock`, for a mutex that is part of the object `owner`.
  ///
  /// The thread sanitizer does not see the standard library's synchronisation for a contended
  /// mutex, and would report the protected accesses. This function informs it.
  package borrowing func withLock<R: Sendable, Failure: Error>(
    of owner: AnyObject,
    _ body: (inout Value) throws(Failure) -> R
  ) throws(Failure) -> R {
    let lock = unsafe Unmanaged.passUnretained(owner).toOpaque()
    return try withLock { value throws(Failure) in
      unsafe cll_sanitizer_locked(lock)
      defer { unsafe cll_sanitizer_unlocks(lock) }
      return try body(&value)
    }
  }
}
