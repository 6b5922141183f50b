// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore
import LongLinkTransport

/// The application's functions for connections and pushes. `start` gives each loop a snapshot, so
/// that the loops share no lock.
struct ServerHooks: Sendable {
  var accept: (@Sendable (SocketAddress?) -> Bool)?
  var connect: (@Sendable (Peer) -> Void)?
  var disconnect: (@Sendable (Peer) -> Void)?
  var pushes: [MessageType: @Sendable (Push, Peer) -> Void] = [:]
}
