// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The results for many idle connections so far. The client prints them as a line of JSON after
/// opening the connections, after the idle time, and after the push.
package struct IdleOutcome: Codable, Sendable {
  package let connections: Int
  /// The time that it took to open all of them.
  package var connectSeconds = 0.0
  /// The growth of the client's resident memory, in bytes.
  package var memory: UInt64 = 0
  /// The client's CPU time while they were idle, as a fraction of that time.
  package var cpuShare = 0.0
  /// The time from the request for a push to all until all of them had received it.
  package var pushSeconds = 0.0

  package init(connections: Int) {
    self.connections = connections
  }

  /// Prints it as a line.
  package func print() throws {
    Swift.print(String(decoding: try JSONEncoder().encode(self), as: UTF8.self))
    fflush(nil)
  }
}
