// SPDX-License-Identifier: Apache-2.0

/// An error of LongLink that may stand for a cancellation.
package protocol CancellableError: Error {
  /// Whether the caller or its task was cancelled.
  var wasCancelled: Bool { get }
}

extension LongLinkError: CancellableError {
  package var wasCancelled: Bool { code == .cancelled }
}

extension Error {
  /// Whether the operation ended because its caller, or its task, was cancelled, and not because
  /// something failed.
  ///
  /// That is so for Swift's `CancellationError`, for a ``LongLinkError`` with the code `cancelled`,
  /// and for the errors of calls, uploads and downloads that say the same. When one task of a group
  /// fails, the group cancels the others; this tells their errors from the first:
  ///
  ///     catch where !error.isCancellation { report(error) }
  ///
  /// It is false for what the peer has said, such as a rejection with `ResponseCode.cancelled`.
  public var isCancellation: Bool {
    (self as? any CancellableError)?.wasCancelled ?? (self is CancellationError)
  }
}
