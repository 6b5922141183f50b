import Dispatch
import LongLinkConnection
import Synchronization

/// Where a plain thread waits for an outcome.
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
}
