// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
import LongLinkTransport

/// The short links of a client, on its loop: which there are, and what they have counted. The core
/// opens them as its `WayMachine` says.
final class ShortLinks {
  let openers: [any ShortLinkOpener]
  var machine: WayMachine
  var connections: [ShortConnection] = []
  var timer: LoopTimer?
  var armedFor = LinkInstant.distantFuture
  var isPerforming = false
  var refusals = CredentialRefusals()
  /// The last refusal that counts.
  var refusal: ConnectFailure?
  /// The counters of short links, by the index of their way.
  private var counted: [ShortLinkCounters]

  /// Makes the short links of a client; nil if no short link is among the ways.
  init?(_ configuration: ClientConfiguration) {
    openers = configuration.ways.compactMap(\.opener)
    guard !openers.isEmpty else { return nil }
    counted = openers.map { _ in ShortLinkCounters() }
    machine = WayMachine(
      settings: WayMachine.Settings(
        hasLongLink: configuration.hasLongLink, ways: openers.count,
        connectBound: configuration.connectTimeout.clampedNanoseconds,
        reconnect: configuration.reconnect))
  }

  func name(of way: Int?) -> String { way.map { openers[$0].name } ?? "" }

  /// Counts what happens on a way.
  func count(_ way: Int, _ change: (inout ShortLinkCounters) -> Void) { change(&counted[way]) }

  /// The counters of short links, by the ways' names.
  var counters: [String: ShortLinkCounters] {
    var counters: [String: ShortLinkCounters] = [:]
    for (way, more) in counted.enumerated() {
      var sum = counters[openers[way].name] ?? ShortLinkCounters()
      sum.begun += more.begun
      sum.failed += more.failed
      sum.requests += more.requests
      sum.unanswered += more.unanswered
      counters[openers[way].name] = sum
    }
    return counters
  }

  /// Whether output has not been written.
  var hasWork: Bool { connections.contains { !$0.link.hasWrittenAll } }

  func closeAll(aborts: Bool) {
    for connection in connections {
      if aborts { connection.link.close(.closedHere) } else { connection.link.shutDown() }
    }
  }
}

/// One short link of a client, which carries one request.
final class ShortConnection {
  let link: Link
  let way: Int
  /// What the client has shown.
  let credential: [UInt8]
  /// The number of refusals of short links when this one was opened.
  let refusalsBefore: UInt64
  private let core: ClientCore
  /// The position in the link's stream at which its request begins; nil before it has one.
  private var begin: UInt64?
  private var sentAt = LinkInstant.distantFuture
  /// Whether the server has said something of the exchange, or has turned it away.
  private var hasAnswered = false

  init(_ link: Link, way: Int, credential: [UInt8], core: ClientCore) {
    self.link = link
    self.way = way
    self.credential = credential
    self.core = core
    refusalsBefore = core.shortLinks?.refusals.count ?? 0
  }

  /// Carries the most urgent request; ends the link if there is none.
  private func opened() {
    guard let shortLinks = core.shortLinks else { return }
    shortLinks.machine.opened(link.id)
    let position = link.bytesWritten + UInt64(link.bytesUnwritten)
    // While the long link is there, it takes the requests.
    guard !core.requests.hasLink, core.requests.carry(over: link) else {
      link.close(.left)
      return
    }
    begin = position
    sentAt = core.loop.now
    shortLinks.count(way) { $0.requests += 1 }
    core.publishState()
  }

  private func outcome(_ reason: CloseReason) -> WayMachine.Outcome {
    if hasAnswered || link.counters.creditsReceived > 0 { return .worked }
    let isWritten = begin.map { link.bytesWritten > $0 } ?? false
    if reason == .left || reason == .closedHere {
      // Given up. The handler may be slow where the greeting has come; without one, it shows
      // something only if the server had all the time that a connect has.
      let bound = sentAt + core.configuration.connectTimeout.clampedNanoseconds
      let isSilent = reason == .closedHere && link.counters.framesReceived == 0
      return isWritten && isSilent && core.loop.now >= bound ? .silent : .unused
    }
    return isWritten ? .silent : .failed
  }
}

extension ShortConnection: LinkOwner {
  func link(_ link: Link, received message: Arrival) {
    hasAnswered = true
    core.credentialAccepted(on: self)
    switch message.kind {
    case .response:
      core.requests.answered(message, on: link)
      // A response that nobody waits for any more ends the exchange too.
      link.shutDownIfUnused(by: core.requests)
    case .item, .end: core.requests.received(item: message, on: link)
    default: break
    }
  }

  func link(_ link: Link, reports news: LifeNews) {
    let requests = core.requests
    switch news {
    case .established: opened()
    case .peerLeaving(let goaway):
      hasAnswered = true
      // First, so that callers which go on at once find what was learned.
      let code = ResponseCode(wire: goaway.code)
      if code.deniesAccess { core.credentialRefused(goaway, on: self) }
      if code == .draining, goaway.requestsAccepted == 0, requests.carriedCount(by: link) > 0 {
        core.turnedAway(self, goaway)
      }
      requests.leaving(
        link, accepted: goaway.requestsAccepted, code: code, reason: goaway.reason,
        acceptsNext: code == .draining)
      link.shutDownIfUnused(by: requests)
    case .abandon(let reason):
      core.abandoned(self, reason)
      requests.lost(link, reason, resends: core.closing == nil)
    }
  }

  func link(_ link: Link, reports news: RequestNews) { core.requests.heard(news, on: link) }

  func link(_ link: Link, reports news: StreamNews, of serial: UInt32) {
    core.requests.heard(news, of: serial, on: link)
  }

  func requestsCarried(by link: Link) -> Int { core.requests.carriedCount(by: link) }

  func linkWroteAll(_ link: Link) {
    if core.closing != nil { core.finishClosingIfDone() }
  }

  func link(_ link: Link, endedWith reason: CloseReason) {
    core.ended(self, reason, outcome(reason))
  }
}
