// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// What a peer's server tells whoever started it.
package enum Serving {
  /// Tells where the server listens.
  package static func listening(on port: UInt16) {
    print("listening \(port)")
    fflush(nil)
  }

  /// Tells, for each line of the standard input and at its end, what was done and used so far; then
  /// ends the process. Blocks the thread.
  package static func waitForTheEnd(requests: () -> UInt64) -> Never {
    while readLine() != nil { tell(requests()) }
    tell(requests())
    exit(0)
  }

  private static func tell(_ requests: UInt64) {
    let usage = Usage.now
    ServerOutcome(
      requests: requests, cpu: usage.cpu, allocations: usage.allocations,
      systemCalls: usage.systemCalls, peakMemory: Usage.peakMemory,
      memory: Usage.residentMemory
    ).print()
  }
}

/// The requests that a server was given.
package final class RequestCount: Sendable {
  private let storage = Atomic<UInt64>(0)

  package init() {}

  package var value: UInt64 { storage.load(ordering: .relaxed) }

  /// One more, where one thread alone counts: that costs next to nothing.
  @inline(__always)
  package func oneMoreOnOneThread() {
    storage.store(storage.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
  }

  /// One more, on whatever thread.
  @inline(__always)
  package func oneMore() {
    storage.wrappingAdd(1, ordering: .relaxed)
  }
}
