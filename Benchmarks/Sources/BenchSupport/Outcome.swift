// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The result of one run of a peer's client, printed as a line of JSON.
package struct Outcome: Codable, Sendable {
  /// The number of responses in the counted time.
  package var requests: UInt64
  /// The counted time.
  package var seconds: Double
  /// The number of all responses.
  package var allRequests: UInt64
  /// In nanoseconds.
  package var p50: UInt64
  package var p99: UInt64
  package var p999: UInt64
  /// In the counted time, in seconds of one CPU.
  package var cpu: Double
  /// In the counted time.
  package var allocations: UInt64
  /// In the counted time.
  package var systemCalls: UInt64
  /// The peak resident memory, in bytes.
  package var peakMemory: UInt64
  /// The resident memory before the first item of a stream, in bytes.
  package var idleMemory: UInt64?

  package init(
    requests: UInt64, seconds: Double, allRequests: UInt64, p50: UInt64, p99: UInt64, p999: UInt64,
    cpu: Double, allocations: UInt64, systemCalls: UInt64, peakMemory: UInt64
  ) {
    self.requests = requests
    self.seconds = seconds
    self.allRequests = allRequests
    self.p50 = p50
    self.p99 = p99
    self.p999 = p999
    self.cpu = cpu
    self.allocations = allocations
    self.systemCalls = systemCalls
    self.peakMemory = peakMemory
  }

  /// Prints it as a line.
  package func print() throws {
    Swift.print(String(decoding: try JSONEncoder().encode(self), as: UTF8.self))
    fflush(nil)
  }
}

/// The counts and usage of a peer's server so far, printed as a line of JSON.
package struct ServerOutcome: Codable, Sendable {
  /// The number of requests received.
  package var requests: UInt64
  /// In seconds of one CPU.
  package var cpu: Double
  package var allocations: UInt64
  package var systemCalls: UInt64
  /// The peak resident memory, in bytes.
  package var peakMemory: UInt64
  /// The resident memory, in bytes.
  package var memory: UInt64
  /// The allocated memory, in bytes.
  package var heap: UInt64

  package init(
    requests: UInt64, cpu: Double, allocations: UInt64, systemCalls: UInt64, peakMemory: UInt64,
    memory: UInt64, heap: UInt64 = 0
  ) {
    self.memory = memory
    self.heap = heap
    self.requests = requests
    self.cpu = cpu
    self.allocations = allocations
    self.systemCalls = systemCalls
    self.peakMemory = peakMemory
  }

  func print() {
    guard let data = try? JSONEncoder().encode(self) else { return }
    Swift.print(String(decoding: data, as: UTF8.self))
    fflush(nil)
  }
}
