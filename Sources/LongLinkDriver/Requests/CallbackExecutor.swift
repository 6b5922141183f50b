// SPDX-License-Identifier: Apache-2.0

public import Dispatch

/// The queue, executor or loop on which completion handlers run.
public struct CallbackExecutor: Sendable {
  /// Runs a closure; nil to run it on the loop of the connection.
  private let run: (@Sendable (@escaping @Sendable () -> Void) -> Void)?

  /// Makes an executor from a function that runs the closure it gets exactly once, on any thread.
  public init(_ run: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) {
    self.run = run
  }

  /// Returns an executor that runs completion handlers on a dispatch queue.
  public static func queue(_ queue: DispatchQueue) -> CallbackExecutor {
    CallbackExecutor { work in queue.async(execute: work) }
  }

  /// Returns an executor that runs each completion handler in a new task on a task executor.
  public static func executor(_ executor: any TaskExecutor) -> CallbackExecutor {
    CallbackExecutor { work in _ = Task(executorPreference: executor) { work() } }
  }

  /// An executor that runs completion handlers on the loop of the connection, which they must not
  /// block.
  ///
  /// A handler never runs inside the call that makes its request, so it may make the next request.
  public static let connectionLoop = CallbackExecutor()

  private init() {
    run = nil
  }

  /// Runs a function where the executor says; called on the loop.
  func perform(_ work: @escaping @Sendable () -> Void) {
    if let run { run(work) } else { work() }
  }

  /// A function to be called on the loop, which calls `completion` where the executor says.
  func calling(
    _ completion: @escaping @Sendable (Outcome) -> Void
  ) -> @Sendable (Outcome) -> Void {
    guard let run else { return completion }
    return { outcome in run { completion(outcome) } }
  }
}
