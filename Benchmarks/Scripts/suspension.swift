// SPDX-License-Identifier: Apache-2.0

// Measures the time in which Swift's runtime suspends and resumes a task, in microseconds. 128
// tasks take turns on an executor in this thread, with and without a cancellation handler.
import Glibc

final class Queue: TaskExecutor, @unchecked Sendable {
  private var jobs: [UnownedJob] = []
  private var running: [UnownedJob] = []

  func enqueue(_ job: consuming ExecutorJob) { jobs.append(UnownedJob(job)) }

  func runAll() {
    swap(&jobs, &running)
    for job in running { job.runSynchronously(on: asUnownedTaskExecutor()) }
    running.removeAll(keepingCapacity: true)
  }
}

// Used only by the single thread.
nonisolated(unsafe) var waiting: [UnsafeContinuation<Int, Never>] = []
nonisolated(unsafe) var resuming: [UnsafeContinuation<Int, Never>] = []
nonisolated(unsafe) var ended = 0

@inline(never) func suspend() async -> Int {
  await withUnsafeContinuation { waiting.append($0) }
}

func seconds() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
}

func measure(isWatched: Bool) -> Double {
  let (tasks, times) = (128, 4_000)
  let queue = Queue()
  ended = 0
  for _ in 0..<tasks {
    Task(executorPreference: queue) {
      for _ in 0..<times {
        if isWatched {
          _ = await withTaskCancellationHandler {
            await suspend()
          } onCancel: {
          }
        } else {
          _ = await suspend()
        }
      }
      ended += 1
    }
  }
  let begin = seconds()
  while ended < tasks {
    queue.runAll()
    swap(&waiting, &resuming)
    for continuation in resuming { continuation.resume(returning: 1) }
    resuming.removeAll(keepingCapacity: true)
  }
  return (seconds() - begin) / Double(tasks * times) * 1e6
}

print(measure(isWatched: false), measure(isWatched: true))
