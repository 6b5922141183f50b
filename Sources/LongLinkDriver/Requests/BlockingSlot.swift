// SPDX-License-Identifier: Apache-2.0

import Dispatch
import LongLinkTransport
import Synchronization

/// An outcome that a plain thread blocks on.
final class BlockingSlot: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)
  private let outcome = Mutex<Outcome?>(nil)

  func fill(_ outcome: Outcome) {
    self.outcome.withLock { $0 = outcome }
    semaphore.signal()
  }

  func wait() -> Outcome {
    semaphore.wait()
    return outcome.withLock { $0! }
  }

  static func preconditionMayBlock(on loop: EventLoop) {
    precondition(
      !loop.isCurrent, "a blocking request on its own event loop would never end")
    let isTask = unsafe withUnsafeCurrentTask { unsafe $0 != nil }
    precondition(
      !isTask, "a blocking request must not be made from a Swift task; use the async form")
  }
}
