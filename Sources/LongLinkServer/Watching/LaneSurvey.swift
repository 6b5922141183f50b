// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
package import LongLinkDriver

/// The sums over all connections of one loop, which are visited in several turns.
///
/// No counter is lower than in an earlier survey: each connection counts in the totals of those
/// that have ended, when it is visited, or when it ends before its visit.
package struct LaneSurvey: Sendable {
  let number: UInt64
  /// The number of the connection that was visited last.
  private var last: UInt64 = 0
  /// The counters of all connections, past and present.
  package private(set) var counters: ConnectionCounters
  /// The counters of the server's own requests.
  package private(set) var requests: RequestCounters
  package let pushesUnhandled: UInt64
  package let shortLinks: UInt64
  /// How often items waited for credit on connections that are open, or ended during the survey.
  package private(set) var creditStalls: UInt64 = 0
  /// The long connections that are open, and those that are about to end.
  package private(set) var open = 0
  package private(set) var draining = 0
  package private(set) var requestsRunning = 0
  package private(set) var pushesWaiting = 0
  /// The bytes of output that wait to be written.
  package private(set) var queuedBytes = 0

  init(_ number: UInt64, of lane: ServerLane) {
    self.number = number
    counters = lane.totals.counters
    requests = lane.requestTotals
    pushesUnhandled = lane.pushesUnhandled
    shortLinks = lane.shortLinks
  }

  /// Visits a connection; nil stands for one that has ended.
  mutating func add(_ id: UInt64, _ connection: ServerConnection?) {
    last = id
    guard let connection else { return }
    count(connection)
    let link = connection.link
    requestsRunning += link.connection.inbound.count
    pushesWaiting += connection.pushesWaiting
    queuedBytes += link.connection.outbox.totalBytes
    guard !link.connection.settings.isShort else { return }
    if connection.isLeaving { draining += 1 } else if connection.wasOpened { open += 1 }
  }

  /// Notes that a connection ends.
  mutating func ended(_ connection: ServerConnection) {
    if connection.id > last { count(connection) }
  }

  private mutating func count(_ connection: ServerConnection) {
    counters += connection.link.counters
    requests += connection.requestCounters
    creditStalls += connection.link.record?.creditStalls ?? 0
  }
}
