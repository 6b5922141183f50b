// SPDX-License-Identifier: Apache-2.0

internal import LongLinkTransport

extension EventLoop {
  /// Runs a closure on the loop and returns what it returns; at once where the caller is there.
  func perform<T: Sendable>(_ body: @escaping @Sendable () -> T) async -> T {
    if isCurrent { return body() }
    return await withCheckedContinuation { continuation in
      execute { continuation.resume(returning: body()) }
    }
  }

  /// Runs a closure on the loop: at once where the caller is there, else as soon as it can.
  func order(_ body: @escaping @Sendable () -> Void) {
    if isCurrent { body() } else { execute(body) }
  }
}
