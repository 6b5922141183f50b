// SPDX-License-Identifier: Apache-2.0

import Foundation

/// What clients that renew their credentials have done so far. They print it as a line of JSON when
/// all are connected, and at the end of the counted time.
package struct RenewOutcome: Codable, Sendable {
  /// Credentials that were shown, those of the connects included.
  package var renewals: UInt64 = 0
  package var allocations: UInt64 = 0
  /// Frames that came. Nothing else comes, unless it is a heartbeat.
  package var answers: UInt64 = 0

  package init() {}

  /// Prints it as a line.
  package func print() throws {
    Swift.print(String(decoding: try JSONEncoder().encode(self), as: UTF8.self))
    fflush(nil)
  }
}
