// SPDX-License-Identifier: Apache-2.0

/// An actor on a loop.
private actor LoopActor {
  private let loop: EventLoop

  init(_ loop: EventLoop) {
    self.loop = loop
  }

  nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe loop.asUnownedSerialExecutor()
  }

  func perform<Value: Sendable>(_ work: @Sendable () -> Value) -> Value {
    work()
  }
}

extension EventLoop {
  /// Runs a function on the loop and returns its value; without suspending if already there.
  package func run<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value {
    if isCurrent { return work() }
    return await LoopActor(self).perform(work)
  }
}
