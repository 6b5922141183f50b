// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkRuntimeHooks
internal import LongLinkTransport

/// Keeps tasks that are made without an executor on the simulated loop that they are made on.
enum TaskCapture {
  /// Asks the runtime for them; in a process once.
  private static let installed: Void = unsafe cll_capture_global_jobs { job in
    guard let loop = EventLoop.current, let driver = loop.driver as? SimulatedDriver,
      driver.networkState.capturesTasks
    else { return false }
    // The runtime hands over a pointer to a job, which is all that this structure holds.
    let job = unsafe unsafeBitCast(job, to: UnownedJob.self)
    loop.enqueueOnTaskExecutor(ExecutorJob(job))
    return true
  }

  static func install() {
    _ = installed
  }
}
