// SPDX-License-Identifier: Apache-2.0

/// A delay before the next round, and the window from which it was drawn.
package struct LinkWait: Hashable, Sendable {
  package enum Cause: Hashable, Sendable {
    /// A proven link was closed.
    case closed
    /// A proven link lost its heartbeat.
    case heartbeatLost
    /// A round has failed: no address of the server completed a handshake, or there was no
    /// credential for it.
    case refused
    /// A link ended after its handshake, before it was proven.
    case unproven
    /// The server asked clients to stay away.
    case goaway
  }

  /// The number of failed rounds and unproven links in this outage.
  package var failures: Int
  /// The window from which the delay was drawn. Both are in nanoseconds.
  package var window: Int64
  package var delay: Int64
  package var cause: Cause
}
