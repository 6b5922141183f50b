// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
import LongLinkTransport

/// One short link of a client, which carries one request.
final class ShortConnection {
  let link: Link
  let way: Int
  /// The credential that the client shows on this short link.
  let credential: [UInt8]
  /// The number of refusals over short links when this one was opened.
  let refusalsBefore: UInt64
  private let core: ClientCore
  private let shortLinks: ShortLinks
  /// The position in the link's stream at which its request begins; nil before it has one.
  private var begin: UInt64?
  private var sentAt = LinkInstant.distantFuture
  /// Whether the server has sent any part of an answer, or a goaway.
  private var hasAnswered = false

  init(
    _ link: Link, way: Int, credential: [UInt8], of shortLinks: ShortLinks, core: ClientCore
  ) {
    self.link = link
    self.way = way
    self.credential = credential
    self.shortLinks = shortLinks
    self.core = core
    refusalsBefore = core.machine.shortRefusals.count
  }

  /// Gives the most urgent request to the link; closes the link if there is none.
  private func opened() {
    core.note(.short(.opened(link.id)))
    let position = link.connection.outbox.written + UInt64(link.connection.outbox.totalBytes)
    // While there is a long link, it takes the requests.
    guard !core.requests.hasLink, core.requests.carry(over: link) else {
      link.close(.left)
      return
    }
    begin = position
    sentAt = core.loop.now
    shortLinks.count(way) { $0.requests += 1 }
    core.settle()
  }

  private func outcome(_ reason: CloseReason) -> WayMachine.Outcome {
    if hasAnswered || link.counters.creditsReceived > 0 { return .worked }
    let isWritten = begin.map { link.connection.outbox.written > $0 } ?? false
    if reason == .left || reason == .closedHere {
      // This side gave up. If the greeting has come, the handler may just be slow. Otherwise the
      // server has been silent only if it had as much time as a connect has.
      let bound = sentAt + core.configuration.timeouts.connect.clampedNanoseconds
      let isSilent = reason == .closedHere && link.counters.framesReceived == 0
      return isWritten && isSilent && core.loop.now >= bound ? .silent : .unused
    }
    return isWritten ? .silent : .failed
  }
}

extension ShortConnection: LinkOwner {
  func link(_ link: Link, received message: Arrival) {
    hasAnswered = true
    if core.machine.shortRefusals.areOf(credential) { core.tell(.short(.accepted(credential))) }
    switch message.kind {
    case .response:
      core.requests.answered(message, on: link)
      // A response for which no request waits any more ends the short link, too.
      link.shutDownIfUnused(by: core.requests)
    case .item, .end: core.requests.received(item: message, on: link)
    default: break
    }
  }

  func link(_ link: Link, reports news: LifeNews) {
    let requests = core.requests
    switch news {
    case .established: opened()
    case .renewed: break
    case .peerLeaving(let goaway):
      hasAnswered = true
      // Noted first, so that callers which go on at once find what was learned.
      let code = ResponseCode(wire: goaway.code)
      if code.deniesAccess { shortLinks.refused(goaway, on: self) }
      if code == .draining, goaway.requestsAccepted == 0, requests.carriedCount(by: link) > 0 {
        shortLinks.turnedAway(goaway, on: self)
      }
      requests.leaving(
        link, accepted: goaway.requestsAccepted, code: code, reason: goaway.reason,
        acceptsNext: code == .draining)
      link.shutDownIfUnused(by: requests)
    case .abandon(let reason):
      shortLinks.abandoned(self, reason)
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
    shortLinks.ended(self, reason, outcome(reason))
  }
}
