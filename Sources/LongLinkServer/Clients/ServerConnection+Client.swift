// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver

extension ServerConnection {
  /// Makes this newly opened connection the current one of its client. Returns whether the client
  /// is new.
  func joinClient() -> Bool {
    let principal = peer.principalRecord
    let joined = lane.shared.clients.join(
      peer, link.identity.takeClientID(), principal: principal?.name, after: lane.broadcastsBegun)
    client = joined?.client
    peer.identified(as: principal, security: link.security, client: client)
    guard let joined else { return true }
    for older in joined.older.leaving { older.perform(.leave) }
    // A second connection is often a sign that the first one is dead.
    for older in joined.older.staying { older.perform(.probe) }
    return joined.isNew
  }
}
