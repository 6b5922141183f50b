// SPDX-License-Identifier: Apache-2.0

import Foundation

/// What many idle connections came to, as far as it is known; a line of JSON on the client's
/// standard output once they are open, once they have been idle, and once they were pushed to.
package struct IdleOutcome: Codable, Sendable {
  package let connections: Int
  /// How long it took to open all of them.
  package var connectSeconds = 0.0
  /// What they made the client's resident memory grow by, in bytes.
  package var memory: UInt64 = 0
  /// The CPU time that the client used while they were idle, by the time.
  package var cpuShare = 0.0
  /// How long it took until all of them had heard a push to all, from when it was asked for.
  package var pushSeconds = 0.0

  package init(connections: Int) {
    self.connections = connections
  }

  /// Writes it as a line.
  package func print() throws {
    Swift.print(String(decoding: try JSONEncoder().encode(self), as: UTF8.self))
    fflush(nil)
  }
}
