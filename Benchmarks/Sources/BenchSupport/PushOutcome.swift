// SPDX-License-Identifier: Apache-2.0

import Foundation

/// What a push costs, in microseconds of CPU time. It is printed as a line of JSON.
package struct PushOutcome: Codable, Sendable {
  /// To the clients of a principal.
  package let principal: Double
  /// To a peer that is at hand.
  package let peer: Double

  package init(principal: Double, peer: Double) {
    self.principal = principal
    self.peer = peer
  }

  /// Prints it as a line.
  package func print() throws {
    Swift.print(String(decoding: try JSONEncoder().encode(self), as: UTF8.self))
    fflush(nil)
  }
}
