// SPDX-License-Identifier: Apache-2.0

import CLongLinkSystem
import LongLinkTransport

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

#if compiler(<6.4) && !LONGLINK_PORTABLE
extension Waiter {
  /// Lets an executor enqueue the task when it is resumed, not the one that the task prefers.
  ///
  /// After each suspension a task goes on to where it belongs, so that it may be resumed anywhere.
  @inline(__always)
  func resume(by executor: some SerialExecutor) {
    // An executor is an object and its conformance.
    let (object, conformance) = unsafe unsafeBitCast(
      UnownedSerialExecutor(ordinary: executor), to: (UnsafeRawPointer, UnsafeRawPointer).self)
    unsafe cll_resume_on(continuation.address, object, conformance)
  }
}

/// Enqueues the tasks that wait on its loop for its requests. It is not the loop, because the loop
/// runs jobs of an executor as those of an actor, which these tasks would have to leave.
extension RequestPort: SerialExecutor {
  @usableFromInline package func enqueue(_ job: consuming ExecutorJob) {
    loop.enqueueOnTaskExecutor(job)
  }
}
#endif

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
