// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

extension Responder {
  /// Refuses a request that the rule of its route does not allow. The peer does not learn why.
  func refuseAccess(_ arrival: Arrival, on link: Link) {
    link.count { $0.refusedAccess += 1 }
    refuse(
      arrival, on: link, .forbidden, "access to message type \(arrival.tag) is denied",
      because: "the access rule of its route does not allow the peer")
  }
}
