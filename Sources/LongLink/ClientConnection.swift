// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore

/// One connection of a client with what belongs to it.
final class ClientConnection {
  let link: Link
  let peer: Peer
  let responder: Responder
  /// Whether the connection's handshake was completed and it won the race against other attempts.
  var isEstablished = false
  /// Whether the connection has shown that the server is healthy.
  var hasWorked = false
  /// The client's `path` when it was made.
  let path: Int
  /// When its trial began; nil if it stood none.
  var heldSince: LinkInstant?
  /// Whether its server has said goaway during the trial, so that it never takes requests.
  var hasLeft = false
  /// When the connection began to take new requests; nil if it has not.
  var usedSince: LinkInstant?
  /// The bytes that had arrived when it was established; nil before.
  var bytesBefore: UInt64?
  /// Whether bytes have arrived since. Where the protocol has no ping, none need ever arrive.
  var isHeard: Bool {
    guard let bytesBefore else { return false }
    return link.counters.bytesReceived > bytesBefore || !link.canPing
  }
  /// Whether its handshake was completed; it may still stand its trial.
  var isOpened: Bool { isEstablished || heldSince != nil }
  /// Whether the server has answered anything of an exchange.
  var hasAnswered: Bool {
    let counters = link.counters
    return counters.responsesReceived + counters.itemsReceived + counters.creditsReceived > 0
  }
  /// The requests that it carried when it was lost.
  var requestsLost = 0

  init(link: Link, peer: Peer, responder: Responder, path: Int) {
    self.link = link
    self.peer = peer
    self.responder = responder
    self.path = path
  }
}
