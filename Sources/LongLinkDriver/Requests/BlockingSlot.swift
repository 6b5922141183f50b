// SPDX-License-Identifier: Apache-2.0

import Dispatch
import LongLinkTransport
import Synchronization

/// A value that a plain thread blocks on.
final class BlockingSlot<Value: Sendable>: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)
  private let value = Mutex<Value?>(nil)

  func fill(_ value: Value) {
    self.value.withLock { $0 = value }
    semaphore.signal()
  }

  func wait() -> Value {
    semaphore.wait()
    return value.withLock { $0! }
  }

  static func preconditionMayBlock(on loop: EventLoop) {
    precondition(
      !loop.isCurrent, "a blocking request on its own event loop would never end")
    let isTask = unsafe withUnsafeCurrentTask { unsafe $0 != nil }
    precondition(
      !isTask, "a blocking request must not be made from a Swift task; use the async form")
  }
}
