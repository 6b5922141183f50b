// SPDX-License-Identifier: Apache-2.0

import CLongLinkSystem

/// A suspended caller. Its holder calls it exactly once.
@safe package struct Waiter<Value: Sendable>: Sendable {
  private let continuation: UnsafeContinuation<Value, Never>

  fileprivate init(_ continuation: UnsafeContinuation<Value, Never>) {
    unsafe self.continuation = continuation
  }

  /// Resumes with the value.
  @inline(__always)
  package func callAsFunction(_ value: Value) {
    unsafe cll_hand_over(continuation.address)
    // Holders call it once: they take it out of their table first.
    unsafe continuation.resume(returning: value)
  }
}

/// Suspends until `body`'s waiter is called.
@inline(__always)
package func suspend<Value: Sendable>(_ body: (Waiter<Value>) -> Void) async -> Value {
  var address: UnsafeMutableRawPointer?
  // The caller stays on its executor. The documented function would look that up under the task's
  // lock before it suspends; it is used where a later compiler lacks this one.
  #if compiler(<6.4) && !LONGLINK_PORTABLE
  let value: Value = await unsafe _unsafeInheritExecutor_withUnsafeContinuation { continuation in
    unsafe address = continuation.address
    body(unsafe Waiter(continuation))
  }
  #else
  let value: Value = await unsafe withUnsafeContinuation { continuation in
    unsafe address = continuation.address
    body(unsafe Waiter(continuation))
  }
  #endif
  if let address = unsafe address { unsafe cll_take_over(address) }
  return value
}

extension UnsafeContinuation {
  /// The representation of a continuation: the address of its task.
  fileprivate var address: UnsafeMutableRawPointer {
    unsafe unsafeBitCast(self, to: UnsafeMutableRawPointer.self)
  }
}
