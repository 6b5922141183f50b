// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport
internal import Synchronization

/// The world behind its lock, with the time beside it.
///
/// The simulation's own thread is the only one that changes it while a simulation runs; the lock
/// lets any thread look, and prepare faults.
final class SharedNetwork: Sendable {
  private let networkState: Mutex<NetworkState>
  private let time = Atomic<Int64>(0)
  let watch = EscapeWatch()
  /// Whether tasks without an executor run on the loop that they are made on.
  let capturesTasks: Bool

  init(generator: SeededGenerator, traceCapacity: Int, capturesTasks: Bool) {
    self.capturesTasks = capturesTasks
    networkState = Mutex(NetworkState(generator: generator, traceCapacity: traceCapacity))
  }

  var now: LinkInstant {
    LinkInstant(nanoseconds: time.load(ordering: .acquiring))
  }

  func callAsFunction<R, E: Error>(
    _ body: (inout NetworkState) throws(E) -> sending R
  ) throws(E) -> sending R {
    try networkState.withLock(body)
  }

  /// Moves time and delivers what is due then.
  func advance(to instant: LinkInstant) {
    let calls = networkState.withLock { networkState in
      let calls = networkState.advance(to: instant)
      time.store(networkState.now.nanoseconds, ordering: .releasing)
      return calls
    }
    for call in calls { call() }
  }

  /// Changes the world when some virtual time has passed; nil for never.
  func after(_ delay: Duration?, _ body: @escaping @Sendable (inout NetworkState) -> Void) {
    guard let delay else { return }
    networkState.withLock { networkState in
      let time = networkState.now + max(delay.clampedNanoseconds, 0)
      networkState.schedule.add(.change(body), at: time)
    }
  }
}
