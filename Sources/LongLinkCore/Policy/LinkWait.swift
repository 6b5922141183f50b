// SPDX-License-Identifier: Apache-2.0

/// A pause before the next round, and what it was drawn from.
package struct LinkWait: Hashable, Sendable {
  package enum Cause: Hashable, Sendable {
    /// A link that had worked was closed.
    case closed
    /// A link that had worked lost its heartbeat.
    case heartbeatLost
    /// A round has failed: no address of the server completed a handshake.
    case refused
    /// A link ended that had greeted and done nothing else.
    case unproven
    /// The server asked for it.
    case goaway
  }

  /// Rounds that failed, and links that ended before they had worked, since a link worked.
  package var failures: Int
  /// In nanoseconds, as is the delay.
  package var window: Int64
  package var delay: Int64
  package var cause: Cause
}
