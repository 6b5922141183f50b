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
    detail = link.detail
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
/// Those on which no whole frame has come have places of their own: a scan of ports, or clients
/// that cannot set up TLS, must not drive out what an operator looks for.
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

  private var heard = Ring(most: 1_000)
  private var silent = Ring(most: 100)

  mutating func add(_ connection: EndedConnection, isSilent: Bool) {
    if isSilent { silent.add(connection) } else { heard.add(connection) }
  }

  /// All of them, in no particular order.
  var all: [EndedConnection] { heard.all + silent.all }
}

extension String {
  /// A name as pages show it: the first 64 characters, by Unicode scalars.
  var cutForPages: String { String(String.UnicodeScalarView(unicodeScalars.prefix(64))) }
}
#endif
