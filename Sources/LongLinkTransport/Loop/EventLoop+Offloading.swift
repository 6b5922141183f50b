// SPDX-License-Identifier: Apache-2.0

extension EventLoop {
  /// Runs work that may block, such as reading a file, off the loop.
  ///
  /// In a simulation it runs at once, on the loop: files take no virtual time there, and a run can
  /// be replayed. Call it on the loop.
  package func offload(_ work: @escaping @Sendable () -> Void) {
    preconditionCurrent()
    driver.offload(work)
  }
}

extension LoopDriver {
  /// Runs the work at once.
  package func offload(_ work: @escaping @Sendable () -> Void) { work() }
}
