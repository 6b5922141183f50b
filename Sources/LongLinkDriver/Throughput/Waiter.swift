// SPDX-License-Identifier: Apache-2.0

import CLongLinkSystem

/// A suspended caller. The code that holds the waiter calls it exactly once.
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

/// Suspends until the waiter that `body` gets is called; returns the value.
@inline(__always)
package func suspend<Value: Sendable>(_ body: (Waiter<Value>) -> Void) async -> Value {
  var address: UnsafeMutableRawPointer?
  // The caller stays on its executor. Before it suspends, the documented function would look up the
  // executor under the task's lock; it is used only where a later compiler lacks this one.
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
