// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// The output of a peer's server to its parent process.
package enum Serving {
  /// Prints the server's port.
  package static func listening(on port: UInt16) {
    print("listening \(port)")
    fflush(nil)
  }

  /// Prints the counts and usage so far for each line of the standard input and at its end; then
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
      memory: Usage.residentMemory, heap: Usage.heap
    ).print()
  }
}

/// The number of requests that a server received.
package final class RequestCount: Sendable {
  private let storage = Atomic<UInt64>(0)

  package init() {}

  package var value: UInt64 { storage.load(ordering: .relaxed) }

  /// Adds one, if only one thread counts, which costs next to nothing.
  @inline(__always)
  package func oneMoreOnOneThread() {
    storage.store(storage.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
  }

  /// Adds one, on any thread.
  @inline(__always)
  package func oneMore() {
    storage.wrappingAdd(1, ordering: .relaxed)
  }
}
