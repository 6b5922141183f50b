// SPDX-License-Identifier: Apache-2.0

/// A piece of work that waits to run on a loop.
enum Work {
  /// A job of an actor that lives on the loop.
  case actorJob(UnownedJob)
  /// A job of a task that prefers the loop and is isolated to no actor.
  case taskJob(UnownedJob)
  case closure(@Sendable () -> Void)
  /// A timer without a deadline, which fires at once.
  case timer(LoopTimer)

  /// The job; nil for other work.
  var job: UnownedJob? {
    switch self {
    case .actorJob(let job), .taskJob(let job): job
    case .closure, .timer: nil
    }
  }
}
