// SPDX-License-Identifier: Apache-2.0

import Foundation
import Histogram
import Synchronization

/// Counts the requests of a client, on any threads.
package final class Meter: Sendable {
  /// The callers, in the order of their connections.
  package var lanes: [Lane] { storage.withLock { $0 } }
  /// Whether no more requests should begin.
  let isStopped = Atomic(false)
  private let storage = Mutex<[Lane]>([])
  private let samples = Mutex(Histogram<UInt64>(highestTrackableValue: 100_000_000_000))

  /// Makes one caller for each request in flight.
  package convenience init(_ load: Load) {
    self.init(
      lanes: load.connections * load.inFlight, body: load.body, timedStride: load.timedStride)
  }

  /// - Parameters:
  ///   - body: The bytes of each request.
  ///   - timedStride: The interval between timed requests.
  package init(lanes count: Int, body: Int, timedStride: UInt64) {
    let lanes = (0..<count).map {
      Lane(number: UInt64($0), body: body, timedStride: timedStride, meter: self)
    }
    storage.withLock { $0 = lanes }
  }

  /// Records the latency of each of `count` requests, in nanoseconds.
  package func took(_ nanoseconds: UInt64, count: UInt64 = 1) {
    samples.withLock { _ = $0.record(nanoseconds, count: count) }
  }

  /// Begins the counted time: forgets earlier latencies, and prints that counting begins.
  package func beginCounting() {
    samples.withLock { $0.reset() }
    print("counting")
    fflush(nil)
  }

  /// Does the same for a stream: counts its items, and times the requests beside it. The outcome's
  /// count of all is to be filled in when the stream has ended.
  package func measure(_ load: StreamLoad, items: RequestCount) -> Outcome {
    let lanes = lanes
    if load.items == nil { usleep(UInt32(load.warmUp * 1e6)) }
    wait { items.value > 0 && lanes.allSatisfy { $0.count > 0 } }
    beginCounting()
    let (begin, first) = (Usage.now, load.items == nil ? items.value : 0)
    if let most = load.items {
      wait { items.value >= most }
    } else {
      usleep(UInt32(load.seconds * 1e6))
    }
    wait { items.value > first && (lanes.isEmpty || hasSamples) }
    let (end, last) = (Usage.now, items.value)
    isStopped.store(true, ordering: .relaxed)
    wait { lanes.allSatisfy(\.isAtRest) }
    return outcome(requests: last - first, all: 0, from: begin, to: end)
  }

  /// Whether the counted time is over.
  package var isOver: Bool { isStopped.load(ordering: .relaxed) }

  /// The number of responses so far.
  package var answers: UInt64 { lanes.reduce(0) { $0 + $1.count } }

  /// Waits on this thread for the warm-up, the counted time and the last responses, while the
  /// requests run on other threads. Both times last at least until a request was timed.
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
      if Usage.nanoseconds() > patience { Meter.fail("some requests got no response") }
      usleep(1_000)
    }
  }

  /// Returns the counts between two times.
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

  /// Ends the process: an incorrect run has no figures.
  package static func fail(_ why: String) -> Never {
    FileHandle.standardError.write(Data("\(why)\n".utf8))
    exit(1)
  }
}
