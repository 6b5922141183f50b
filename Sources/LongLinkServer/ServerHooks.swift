// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore
package import LongLinkTransport

/// The application's functions for connections and pushes. `start` gives each loop a snapshot, so
/// that the loops share no lock.
struct ServerHooks: Sendable {
  var accept: (@Sendable (SocketAddress?) -> Bool)?
  var connect: (@Sendable (Peer) -> Void)?
  var disconnect: (@Sendable (Peer) -> Void)?
  var pushes: [MessageType: @Sendable (Push, Peer) -> Void] = [:]
  var services: [any ServerService] = []
}

/// A part of the application that works while a server runs, beside its handlers.
package protocol ServerService: Sendable {
  /// The server is about to listen. Called on its first loop.
  func serverStarted(on loop: EventLoop)
  /// All connections have ended. The loop is the same, and still runs.
  func serverStopped(on loop: EventLoop) async
}
