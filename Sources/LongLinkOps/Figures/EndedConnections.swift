// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkTransport

/// A connection that has ended.
struct EndedConnection: Sendable {
  let id: UInt64
  let address: SocketAddress?
  let name: String
  let principal: String?
  let began: LinkInstant
  let ended: LinkInstant
  let reason: EndReason
  let detail: String
  let underWay: [LinkRecord.UnderWay]
  let underWayCount: Int
  let roundTrip: Int64?
  let bytesReceived: UInt64
  let bytesSent: UInt64
  let features: Features
  let security: String?

  init?(_ link: LinkRecord) {
    guard let reason = link.reason, let ended = link.ended else { return nil }
    id = link.id
    address = link.peer
    name = link.name.cutForPages
    principal = link.principal?.name.cutForPages
    began = link.began
    self.ended = ended
    self.reason = EndReason(link, reason)
    detail = link.detail.cutForPages
    underWay = link.handlersUnderWay
    underWayCount = link.underWay.inbound + link.underWay.outbound
    roundTrip = link.roundTrip
    bytesReceived = link.counters.bytesReceived
    bytesSent = link.counters.bytesSent
    features = link.features
    security = link.security?.version
  }
}

/// The connections that ended last.
///
/// Those that have never opened have places of their own, and those that broke a rule: neither a
/// scan of ports, nor clients that are not accepted, nor one that breaks rules all the time must
/// drive out what an operator looks for.
struct EndedConnections: Sendable {
  private struct Ring {
    let most: Int
    private(set) var all: [EndedConnection] = []
    private var next = 0

    init(most: Int) {
      self.most = most
    }

    mutating func add(_ connection: EndedConnection) {
      guard all.count == most else { return all.append(connection) }
      all[next] = connection
      next = (next + 1) % most
    }
  }

  private var opened = Ring(most: 1_000)
  private var openedViolations = Ring(most: 100)
  private var unopened = Ring(most: 100)
  private var unopenedViolations = Ring(most: 100)

  mutating func add(_ connection: EndedConnection, hasOpened: Bool) {
    switch (hasOpened, connection.reason == .violation) {
    case (true, false): opened.add(connection)
    case (true, true): openedViolations.add(connection)
    case (false, false): unopened.add(connection)
    case (false, true): unopenedViolations.add(connection)
    }
  }

  /// All of them, in no particular order.
  var all: [EndedConnection] {
    opened.all + openedViolations.all + unopened.all + unopenedViolations.all
  }
}

extension String {
  /// A name as pages show it: the first 64 characters, by Unicode scalars.
  var cutForPages: String { String(String.UnicodeScalarView(unicodeScalars.prefix(64))) }
}
#endif
