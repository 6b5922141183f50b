// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import LongLinkCore

extension Responder {
  /// Refuses a request that the rule of its route does not allow. The peer does not learn why.
  func refuseAccess(_ arrival: Arrival, on link: Link) {
    link.count { $0.refusedAccess += 1 }
    link.log(
      .debug, "Refused a request: the access rule of its route does not allow the peer",
      metadata(
        MessageType(tag: arrival.tag), arrival.serial,
        ["principal": "\(PeerText(peer.principalRecord?.name ?? "none"))"]))
    refuse(arrival, on: link, .forbidden, "access to message type \(arrival.tag) is denied")
  }
}
