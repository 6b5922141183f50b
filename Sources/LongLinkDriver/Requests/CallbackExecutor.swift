// SPDX-License-Identifier: Apache-2.0

public import Dispatch

/// Where a completion handler is called.
public struct CallbackExecutor: Sendable {
  /// Nil for the loop that the outcome comes up on.
  private let run: (@Sendable (@escaping @Sendable () -> Void) -> Void)?

  /// Makes an executor of a function that runs what it is given, once, somewhere.
  public init(_ run: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) {
    self.run = run
  }

  /// Calls on a dispatch queue.
  public static func queue(_ queue: DispatchQueue) -> CallbackExecutor {
    CallbackExecutor { work in queue.async(execute: work) }
  }

  /// Calls in a task that runs on an executor.
  public static func executor(_ executor: any TaskExecutor) -> CallbackExecutor {
    CallbackExecutor { work in _ = Task(executorPreference: executor) { work() } }
  }

  /// Calls on the loop of the connection, which the handler must not block.
  ///
  /// It is never called within the call that makes the request, which may so be made again from it.
  public static let connectionLoop = CallbackExecutor()

  private init() {
    run = nil
  }

  /// A function to be called on the loop, which calls `completion` where the executor says.
  func calling(
    _ completion: @escaping @Sendable (Outcome) -> Void
  ) -> @Sendable (Outcome) -> Void {
    guard let run else { return completion }
    return { outcome in run { completion(outcome) } }
  }
}
