// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
package import LongLinkTransport

/// What one side knows of one link.
///
/// The loop changes it. Observers may read it during the calls that pass it.
package final class LinkRecord {
  /// The link's number: unique among the links of its client, or among the last 2³² of its server.
  package let number: UInt32
  package let role: Role
  /// The name of a short link's way; nil for a long link, and on a server.
  package let way: String?
  /// Whether the link is a short link, which carries one exchange.
  package let isShort: Bool
  package let began: LinkInstant
  private let observers: Observers
  /// The peer's address, if known.
  package private(set) var peer: SocketAddress?
  /// When the handshake was complete; nil if it is not.
  package private(set) var opened: LinkInstant?
  /// The client's principal, once the link is open; nil on a client, or without `authenticate`.
  package var principal: PrincipalRecord?
  /// The security of the connection, once the link is open; nil without security.
  package private(set) var security: ConnectionSecurity?
  /// The requests of this side that the link carried when it began to end, and the requests of the
  /// peer whose handlers ran in tasks.
  package private(set) var underWay = (outbound: 0, inbound: 0)
  package private(set) var ended: LinkInstant?
  /// Why the link ended; nil while it has not ended.
  package private(set) var reason: CloseReason?
  /// Why the link ended, as text; empty while it has not ended. Text from the peer is escaped.
  package private(set) var detail = ""
  /// The counters of the link. Valid once it has ended.
  package private(set) var counters = ConnectionCounters()

  /// Begins the record of a link.
  init(_ link: Link, _ observers: Observers) {
    number = link.id
    role = link.connection.settings.role
    way = link.way
    isShort = link.connection.settings.isShort
    peer = link.peer
    began = link.loop.driver.now
    self.observers = observers
    for observer in observers.all { observer.began(self) }
  }

  /// Notes that the link was established, or begins to end.
  func note(_ news: LifeNews, of link: Link) {
    switch news {
    case .established: if link.isOpen { open(link) }
    case .peerLeaving, .renewed: break
    case .abandon:
      let inbound = link.connection.inbound.outlivedHandlers.count { !$0.hasEnded }
      underWay = (link.owner?.requestsCarried(by: link) ?? 0, inbound)
    }
  }

  private func open(_ link: Link) {
    opened = link.loop.driver.now
    peer = link.peer
    security = link.security
    for observer in observers.all { observer.opened(self) }
  }

  func end(_ link: Link, _ reason: CloseReason) {
    ended = link.loop.driver.now
    peer = link.peer
    self.reason = reason
    detail = link.ending.detail(of: reason)
    counters = link.counters
    for observer in observers.all { observer.ended(self) }
  }
}
