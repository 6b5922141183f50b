// SPDX-License-Identifier: Apache-2.0

/// What waits to run on a loop.
enum Work {
  /// A job of an actor that lives on the loop.
  case actorJob(UnownedJob)
  /// A job of a task that prefers the loop and is isolated to no actor.
  case taskJob(UnownedJob)
  case closure(@Sendable () -> Void)
  /// A timer that is due whatever the time.
  case timer(LoopTimer)

  /// The job that it is; nil where it is none.
  var job: UnownedJob? {
    switch self {
    case .actorJob(let job), .taskJob(let job): job
    case .closure, .timer: nil
    }
  }
}
