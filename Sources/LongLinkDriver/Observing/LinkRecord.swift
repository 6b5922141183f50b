// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
package import LongLinkTransport

/// What one side knows of one link.
///
/// The loop changes it. Observers may read it during the calls that pass it.
package final class LinkRecord {
  /// Why a server has asked the client to leave.
  package enum Departure: Sendable {
    /// The connection was drained, and the server goes on.
    case drained
    /// An operator has ended the connection.
    case ended
    /// The server shuts down.
    case shutdown
    /// The client's credential has expired or was revoked.
    case credential
    /// The client has too many connections.
    case limit
  }

  /// A request of the peer whose handler ran in a task when the link began to end.
  package struct UnderWay: Sendable {
    package let serial: UInt32
    package let type: MessageType
    package let method: String?
    package let began: LinkInstant
  }

  /// The link's number: unique among the links of its client or server.
  package let id: UInt64
  package let role: Role
  /// The name of a short link's way; nil for a long link, and on a server.
  package let way: String?
  /// Whether the link is a short link, which carries one exchange.
  package let isShort: Bool
  package let began: LinkInstant
  private let observers: Observers
  private var attachments: [AnyObject] = []
  /// The peer's address, if known.
  package private(set) var peer: SocketAddress?
  /// When the handshake was complete; nil if it is not.
  package private(set) var opened: LinkInstant?
  /// The client's principal, once the link is open; nil on a client, or without `authenticate`.
  package var principal: PrincipalRecord?
  /// The security of the connection, once the link is open; nil without security.
  package private(set) var security: ConnectionSecurity?
  /// Why the server has first asked the client to leave, unless an operator has then ended the
  /// connection; nil if it has not, and on a client.
  package private(set) var departure: Departure?
  /// How often an item of this side had to wait for credit of the peer.
  package private(set) var creditStalls: UInt64 = 0
  /// The requests of this side that the link carried when it began to end, and the requests of the
  /// peer whose handlers ran in tasks.
  package private(set) var underWay = (outbound: 0, inbound: 0)
  /// The first of these requests of the peer, at most `mostUnderWay`.
  package private(set) var handlersUnderWay: [UnderWay] = []
  package private(set) var ended: LinkInstant?
  /// Why the link ended; nil while it has not ended.
  package private(set) var reason: CloseReason?
  /// Why the link ended, as text; empty while it has not ended. Text from the peer is escaped.
  package private(set) var detail = ""
  /// Whether the peer has sent a goaway. Valid once the link has ended.
  package private(set) var peerHasLeft = false
  /// The peer's own name, as it has sent it. Valid once the link has ended.
  package private(set) var name = ""
  /// The features that both sides use. Valid once the link has ended.
  package private(set) var features: Features = []
  /// The round-trip time in nanoseconds, as the system last estimated it; nil if not known.
  package private(set) var roundTrip: Int64?
  /// The counters of the link. Valid once it has ended.
  package private(set) var counters = ConnectionCounters()

  /// The most requests that are named in `handlersUnderWay`.
  package static let mostUnderWay = 16

  /// Begins the record of a link.
  init(_ link: Link, _ observers: Observers) {
    id = link.log.label?.number ?? UInt64(link.id)
    role = link.connection.settings.role
    way = link.way
    isShort = link.connection.settings.isShort
    peer = link.peer
    began = link.loop.driver.now
    self.observers = observers
    for observer in observers.all { observer.began(self) }
  }

  /// Keeps an object of an observer. Call it once for each class.
  package func attach(_ object: AnyObject) { attachments.append(object) }

  /// The object of exactly this class that an observer has attached; nil if there is none.
  package func attachment<Object: AnyObject>(of type: Object.Type) -> Object? {
    for object in attachments where Swift.type(of: object) == type {
      // The object is of this class. A conditional cast takes long, and this is asked in each
      // request.
      return unsafe unsafeDowncast(object, to: Object.self)
    }
    return nil
  }

  /// Notes why the server asks the client to leave. Only the end by an operator replaces an earlier
  /// reason, because the connection ends at once then.
  package func departs(_ departure: Departure) {
    if self.departure == nil || departure == .ended { self.departure = departure }
  }

  /// Notes that an item of this side has to wait for credit.
  func stall() {
    creditStalls += 1
    for observer in observers.all { observer.stalled(self) }
  }

  /// Notes that the link was established, or begins to end.
  func note(_ news: LifeNews, of link: Link) {
    switch news {
    case .established: if link.isOpen { open(link) }
    case .peerLeaving, .renewed: break
    case .abandon(let reason):
      let running = link.connection.inbound.outlivedHandlers.filter { !$0.hasEnded }
      underWay = (link.owner?.requestsCarried(by: link) ?? 0, running.count)
      handlersUnderWay = running.prefix(LinkRecord.mostUnderWay).compactMap(\.underWay)
      for observer in observers.all { observer.abandoned(self, for: reason) }
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
    peerHasLeft = link.connection.goodbyes.ofPeer != nil
    name = link.connection.agreement.name
    features = link.connection.agreement.features
    roundTrip = link.roundTrip
    counters = link.counters
    for observer in observers.all { observer.ended(self) }
  }
}

extension RunningHandler {
  /// The request, for the record of its link; nil if nobody observes.
  fileprivate var underWay: LinkRecord.UnderWay? {
    record.map {
      LinkRecord.UnderWay(
        serial: request.serial, type: request.type, method: $0.method, began: $0.began)
    }
  }
}
