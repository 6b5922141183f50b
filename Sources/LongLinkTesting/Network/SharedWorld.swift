// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport
internal import Synchronization

/// The world behind its lock, with the time beside it.
///
/// The simulation's own thread is the only one that changes it while a simulation runs; the lock
/// lets any thread look, and prepare faults.
final class SharedWorld: Sendable {
  private let world: Mutex<World>
  private let time = Atomic<Int64>(0)
  let watch = EscapeWatch()
  /// Whether tasks without an executor run on the loop that they are made on.
  let capturesTasks: Bool

  init(generator: SeededGenerator, traceCapacity: Int, capturesTasks: Bool) {
    self.capturesTasks = capturesTasks
    world = Mutex(World(generator: generator, traceCapacity: traceCapacity))
  }

  var now: LinkInstant {
    LinkInstant(nanoseconds: time.load(ordering: .acquiring))
  }

  func callAsFunction<R, E: Error>(
    _ body: (inout World) throws(E) -> sending R
  ) throws(E) -> sending R {
    try world.withLock(body)
  }

  /// Moves time and delivers what is due then.
  func advance(to instant: LinkInstant) {
    let calls = world.withLock { world in
      let calls = world.advance(to: instant)
      time.store(world.now.nanoseconds, ordering: .releasing)
      return calls
    }
    for call in calls { call() }
  }

  /// Changes the world when some virtual time has passed; nil for never.
  func after(_ delay: Duration?, _ body: @escaping @Sendable (inout World) -> Void) {
    guard let delay else { return }
    world.withLock { world in
      let time = world.now + max(delay.clampedNanoseconds, 0)
      world.schedule.add(.change(body), at: time)
    }
  }
}
