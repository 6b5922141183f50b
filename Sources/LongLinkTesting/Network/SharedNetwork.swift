// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
internal import LongLinkTransport
internal import Synchronization

/// The world behind its lock, and the time.
///
/// While a simulation runs, only its thread advances the world. The lock lets any thread inspect
/// the world and prepare faults.
package final class SharedNetwork: Sendable {
  private let networkState: Mutex<NetworkState>
  private let time = Atomic<Int64>(0)
  let watch = EscapeWatch()
  /// Whether tasks without an executor run on the loop that creates them.
  let capturesTasks: Bool

  init(generator: SeededGenerator, traceCapacity: Int, capturesTasks: Bool) {
    self.capturesTasks = capturesTasks
    networkState = Mutex(NetworkState(generator: generator, traceCapacity: traceCapacity))
  }

  package var now: LinkInstant {
    LinkInstant(nanoseconds: time.load(ordering: .acquiring))
  }

  package func callAsFunction<R, E: Error>(
    _ body: (inout NetworkState) throws(E) -> sending R
  ) throws(E) -> sending R {
    try networkState.withLock(body)
  }

  /// Advances time and performs due events.
  func advance(to instant: LinkInstant) {
    let calls = networkState.withLock { networkState in
      let calls = networkState.advance(to: instant)
      time.store(networkState.now.nanoseconds, ordering: .releasing)
      return calls
    }
    for call in calls { call() }
  }

  /// Changes the world after a virtual time; nil for never.
  func after(_ delay: Duration?, _ body: @escaping @Sendable (inout NetworkState) -> Void) {
    guard let delay else { return }
    networkState.withLock { networkState in
      let time = networkState.now + max(delay.clampedNanoseconds, 0)
      networkState.schedule.add(.change(body), at: time)
    }
  }
}
