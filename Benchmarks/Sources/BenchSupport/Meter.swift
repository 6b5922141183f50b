// SPDX-License-Identifier: Apache-2.0

import Foundation
import Histogram
import Synchronization

/// Counts the requests of a client, whatever threads they end on.
package final class Meter: Sendable {
  /// The callers, in the order of their connections.
  package var lanes: [Lane] { storage.withLock { $0 } }
  /// Whether no more are to be begun.
  let isStopped = Atomic(false)
  private let storage = Mutex<[Lane]>([])
  private let samples = Mutex(Histogram<UInt64>(highestTrackableValue: 100_000_000_000))

  /// Makes as many callers as the load has requests in flight.
  package init(_ load: Load) {
    let lanes = (0..<load.connections * load.inFlight).map {
      Lane(number: UInt64($0), load: load, meter: self)
    }
    storage.withLock { $0 = lanes }
  }

  /// Notes how long `count` requests took each, in nanoseconds.
  package func took(_ nanoseconds: UInt64, count: UInt64 = 1) {
    samples.withLock { _ = $0.record(nanoseconds, count: count) }
  }

  /// The counted time begins: forgets what took how long so far, and tells so.
  package func beginCounting() {
    samples.withLock { $0.reset() }
    print("counting")
    fflush(nil)
  }

  /// Waits for the warm-up and the counted time on this thread, while the requests run on others,
  /// and then for the last answers. Both last until something was timed at least.
  package func measure(_ load: Load) -> Outcome {
    let lanes = lanes
    usleep(UInt32(load.warmUp * 1e6))
    wait { lanes.allSatisfy { $0.count > 0 } }
    beginCounting()
    let (begin, first) = (Usage.now, answers)
    usleep(UInt32(load.seconds * 1e6))
    wait { answers > first && hasSamples }
    let (end, last) = (Usage.now, answers)
    isStopped.store(true, ordering: .relaxed)
    wait { lanes.allSatisfy(\.isAtRest) }
    return outcome(requests: last - first, all: answers, from: begin, to: end)
  }

  private var hasSamples: Bool { samples.withLock { $0.totalCount > 0 } }

  private func wait(until condition: () -> Bool) {
    let patience = Usage.nanoseconds() + 60_000_000_000
    while !condition() {
      if Usage.nanoseconds() > patience { Meter.fail("requests are left without an answer") }
      usleep(1_000)
    }
  }

  private var answers: UInt64 { lanes.reduce(0) { $0 + $1.count } }

  /// What was counted between two moments.
  package func outcome(
    requests: UInt64, all: UInt64, from begin: Usage, to end: Usage
  ) -> Outcome {
    let (p50, p99, p999) = samples.withLock {
      ($0.valueAtPercentile(50), $0.valueAtPercentile(99), $0.valueAtPercentile(99.9))
    }
    return Outcome(
      requests: requests, seconds: Double(end.time - begin.time) / 1e9, allRequests: all,
      p50: p50, p99: p99, p999: p999, cpu: end.cpu - begin.cpu,
      allocations: end.allocations - begin.allocations,
      systemCalls: end.systemCalls - begin.systemCalls, peakMemory: Usage.peakMemory)
  }

  /// Ends the process: a run that is not right has no figures.
  package static func fail(_ why: String) -> Never {
    FileHandle.standardError.write(Data("\(why)\n".utf8))
    exit(1)
  }
}
