// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkSystem
internal import LongLinkTransport

/// Lets tasks without an executor run on the simulated loop that creates them.
enum TaskCapture {
  /// Installs the hook into the runtime, once per process.
  private static let installed: Void = unsafe cll_capture_global_jobs { job in
    guard let loop = EventLoop.current, let driver = loop.driver as? SimulatedDriver,
      driver.networkState.capturesTasks
    else { return false }
    // The runtime passes a pointer to a job, which is the only content of this structure.
    let job = unsafe unsafeBitCast(job, to: UnownedJob.self)
    loop.enqueueOnTaskExecutor(ExecutorJob(job))
    return true
  }

  static func install() {
    _ = installed
  }
}
