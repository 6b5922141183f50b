// SPDX-License-Identifier: Apache-2.0

import CLongLinkRuntimeHooks

/// Someone suspended until a value comes. Whoever holds it calls it exactly once.
@safe package struct Waiter<Value: Sendable>: Sendable {
  private let continuation: UnsafeContinuation<Value, Never>

  fileprivate init(_ continuation: UnsafeContinuation<Value, Never>) {
    unsafe self.continuation = continuation
  }

  /// Resumes with the value.
  @inline(__always)
  package func callAsFunction(_ value: Value) {
    unsafe cll_hand_over(continuation.address)
    // The holders keep the promise of one call: they take the waiter out of its table first.
    unsafe continuation.resume(returning: value)
  }
}

/// Suspends until the waiter that `body` is given is called.
@inline(__always)
package func suspend<Value: Sendable>(_ body: (Waiter<Value>) -> Void) async -> Value {
  var address: UnsafeMutableRawPointer?
  // The caller is where it wants to be. The other function would ask for that under the task's lock
  // before it suspends; it is what there is where a later compiler has done away with this one.
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
  /// What a continuation is: the address of its task.
  fileprivate var address: UnsafeMutableRawPointer {
    unsafe unsafeBitCast(self, to: UnsafeMutableRawPointer.self)
  }
}
