// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
package import LongLinkDriver
import LongLinkTransport

/// The sums over all connections of one loop, which are visited in several turns.
///
/// No counter is lower than in an earlier survey: each connection counts in the totals of those
/// that have ended, when it is visited, or when it ends before its visit.
package struct LaneSurvey: Sendable {
  /// The counters of all connections, past and present.
  package private(set) var counters: ConnectionCounters
  /// The counters of the server's own requests.
  package private(set) var requests: RequestCounters
  package let pushesUnhandled: UInt64
  package let shortLinks: UInt64
  /// How often items waited for credit on connections that are open, or ended during the survey.
  package private(set) var creditStalls: UInt64 = 0
  /// The long connections that have opened, and of these those that are about to end.
  package private(set) var open = 0
  package private(set) var draining = 0
  package private(set) var requestsRunning = 0
  package private(set) var pushesWaiting = 0
  /// The bytes of output that wait to be written.
  package private(set) var queuedBytes = 0

  fileprivate init(of lane: ServerLane) {
    counters = lane.totals.counters
    requests = lane.requestTotals
    pushesUnhandled = lane.pushesUnhandled
    shortLinks = lane.shortLinks
  }

  fileprivate mutating func add(_ connection: ServerConnection) {
    count(connection)
    let link = connection.link
    requestsRunning += link.connection.inbound.count
    pushesWaiting += connection.pushesWaiting
    queuedBytes += link.connection.outbox.totalBytes
    // Short links, and connections that are refused, have never opened.
    guard connection.wasOpened else { return }
    if connection.isLeaving { draining += 1 } else { open += 1 }
  }

  fileprivate mutating func count(_ connection: ServerConnection) {
    counters += connection.link.counters
    requests += connection.requestCounters
    creditStalls += connection.link.record?.creditStalls ?? 0
  }
}

/// A survey that is under way. Each turn of the loop visits a slice of the connections, so that the
/// loop serves other work in between.
struct SurveyRun {
  /// The most connections in one turn: some 100 µs.
  static let slice = 256

  private(set) var survey: LaneSurvey
  private var rest: ArraySlice<UInt64>
  private var visited: Set<UInt64> = []
  let eachTurn: () -> Void
  let completion: (LaneSurvey) -> Void

  init(
    of lane: ServerLane, eachTurn: @escaping () -> Void,
    then completion: @escaping (LaneSurvey) -> Void
  ) {
    survey = LaneSurvey(of: lane)
    // In no order: to sort them would take too long.
    rest = Array(lane.connections.keys)[...]
    // It never grows, because that too would take long with many connections.
    visited.reserveCapacity(rest.count)
    self.eachTurn = eachTurn
    self.completion = completion
  }

  var isOver: Bool { rest.isEmpty }

  /// Visits the next connections, as far as they have not ended.
  mutating func goOn(in connections: [UInt64: ServerConnection]) {
    for id in rest.prefix(Self.slice) {
      visited.insert(id)
      if let connection = connections[id] { survey.add(connection) }
    }
    rest = rest.dropFirst(Self.slice)
  }

  /// Notes that a connection ends.
  mutating func ended(_ connection: ServerConnection) {
    if !visited.contains(connection.id) { survey.count(connection) }
  }
}

extension ServerLane {
  /// Surveys all connections. A further survey replaces one that is under way.
  func survey(eachTurn: @escaping () -> Void, then completion: @escaping (LaneSurvey) -> Void) {
    let isUnderWay = survey != nil
    survey = SurveyRun(of: self, eachTurn: eachTurn, then: completion)
    if !isUnderWay { loop.atEndOfTurn(self, token: Turn.survey.rawValue) }
  }

  func surveyOn() {
    survey?.eachTurn()
    survey?.goOn(in: connections)
    guard survey?.isOver == true, let run = survey.take() else {
      return loop.atEndOfTurn(self, token: Turn.survey.rawValue)
    }
    run.completion(run.survey)
  }
}
