// SPDX-License-Identifier: Apache-2.0

internal import LongLinkTransport

extension EventLoop {
  /// Runs a closure on the loop and returns its result; immediately if the caller is on the loop.
  func perform<T: Sendable>(_ body: @escaping @Sendable () -> T) async -> T {
    if isCurrent { return body() }
    return await withCheckedContinuation { continuation in
      execute { continuation.resume(returning: body()) }
    }
  }

  /// Runs a closure on the loop: immediately if the caller is on the loop, else in a later turn.
  func order(_ body: @escaping @Sendable () -> Void) {
    if isCurrent { body() } else { execute(body) }
  }
}
