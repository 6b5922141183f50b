// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore

/// One connection of a client with what belongs to it.
final class ClientConnection {
  let link: Link
  let peer: Peer
  let responder: Responder
  /// Whether its handshake was completed and won.
  var isEstablished = false
  /// Whether it has shown that the server is well.
  var hasWorked = false
  /// Over which of the client's paths it was made.
  let path: Int
  /// What the server said when it went away in place of a welcome.
  var farewell: PeerText?
  /// When new requests began to go to it.
  var usedSince: LinkInstant?
  /// The requests that it carried when it was lost.
  var requestsLost = 0

  init(link: Link, peer: Peer, responder: Responder, path: Int) {
    self.link = link
    self.peer = peer
    self.responder = responder
    self.path = path
  }
}
