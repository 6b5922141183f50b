// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLinkCore
import LongLinkDriver
@_spi(Loop) import LongLinkTransport

/// Opening short links, as the `WayMachine` says, and their ends.
extension ClientCore {
  /// Whether requests go over short links, or would if there were any.
  var takesShortLinks: Bool { shortLinks?.machine.carriesRequests ?? false }

  /// The same, also while all ways have failed and the next attempt is not due.
  var hasShortWays: Bool { shortLinks?.machine.isUsed ?? false }

  /// Whether neither connections nor short links are left.
  var hasNoLinks: Bool { connections.isEmpty && shortLinks?.connections.isEmpty ?? true }

  /// The links of connections, and short ones.
  var allLinks: [Link] {
    connections.map(\.link) + (shortLinks?.connections.map(\.link) ?? [])
  }

  /// Opens short links for the requests that wait, if they may take them.
  func updateWays() {
    guard let shortLinks else { return }
    shortLinks.machine.want(wantedShortLinks)
    performWays()
  }

  /// How many requests wait that a short link could carry now.
  private var wantedShortLinks: Int {
    requests.hasLink || closing?.isFinishing == true ? 0 : requests.readyCount
  }

  /// Performs the effects of the machine of ways, and sets its timer.
  func performWays() {
    guard let shortLinks, !shortLinks.isPerforming else { return }
    shortLinks.isPerforming = true
    while let effect = shortLinks.machine.nextEffect() {
      switch effect {
      case .open(let id, let way): open(id, way, shortLinks)
      case .abandon(let id):
        shortLinks.connections.first { $0.link.id == id }?.link.close(.left)
      case .allFailed: allWaysFailed()
      case .ping(let id): _ = connection(id)?.link.ping()
      case .passed(let id): passed(id)
      }
    }
    shortLinks.isPerforming = false
    requests.hasShortLinks = shortLinks.machine.carriesRequests
    publishState()
    armWays(shortLinks)
  }

  /// Uses a long link whose trial is over.
  private func passed(_ id: UInt32) {
    guard let link = connection(id)?.link, link.isOpen else { return }
    acceptLink(link)
    perform()
  }

  /// Ends a trial before its time, because requests cannot take short links; returns whether a link
  /// stood one.
  func endTrial() -> Bool {
    guard let shortLinks, shortLinks.machine.isTrying else { return false }
    shortLinks.machine.endTrial()
    performWays()
    return true
  }

  /// Opens a short link, once the credential is there.
  private func open(_ id: WayMachine.ID, _ way: Int, _ shortLinks: ShortLinks) {
    shortLinks.count(way) { $0.begun += 1 }
    guard credentials != nil else { return open(id, way, with: []) }
    let bound = LoopBound(self, on: loop)
    withCredential { result in
      let core = bound.value
      // It may have been given up meanwhile: the client was suspended, say, or has a connection.
      guard core.shortLinks?.machine.isOpening(id) == true else { return }
      switch result {
      case .success(let credential):
        core.open(id, way, with: credential)
        core.restart(with: credential)
      case .failure(let failure): core.noCredential(id, way, failure)
      }
      core.performWays()
    }
  }

  private func open(_ id: WayMachine.ID, _ way: Int, with credential: [UInt8]) {
    guard let shortLinks else { return }
    let opener = shortLinks.openers[way]
    guard shortLinks.refusals.allows(credential) else { return notOpened(id) }
    guard credential.isEmpty || opener.isConfidential || configuration.sendsCredentialUnencrypted
    else { return couldNotOpen(id, way, .unencryptedCredential(for: nil, way: opener.name)) }
    do throws(SocketError) {
      let transport = try opener.open(on: loop)
      var settings = configuration.shortLinkSettings
      settings.credential = credential
      let link = Link(
        id: id, transport: transport, isConnected: false, settings: settings, on: loop, log: log,
        way: opener.name, observers: configuration.observers)
      let connection = ShortConnection(link, way: way, credential: credential, core: self)
      shortLinks.connections.append(connection)
      link.start(for: connection)
    } catch {
      couldNotOpen(
        id, way,
        ConnectFailure(
          .transport(error.errno), detail: "\(opener.name): \(error.reason)",
          address: error.address))
    }
  }

  private func couldNotOpen(_ id: WayMachine.ID, _ way: Int, _ failure: ConnectFailure) {
    guard let shortLinks else { return }
    shortLinks.count(way) { $0.failed += 1 }
    lastFailure = failure
    shortLinks.machine.ended(id, .failed, at: loop.now, bits: bits)
    shortLinks.machine.want(wantedShortLinks)
  }

  private func noCredential(_ id: WayMachine.ID, _ way: Int, _ failure: ConnectFailure) {
    guard let shortLinks else { return }
    shortLinks.count(way) { $0.failed += 1 }
    lastFailure = failure
    shortLinks.machine.noCredential(id, at: loop.now, bits: bits)
  }

  /// Notes that the server takes no requests for now: pauses, or goes another way, before the
  /// request of this link would be sent again.
  func turnedAway(_ connection: ShortConnection, _ goaway: GoAway) {
    guard let shortLinks else { return }
    lastFailure = ConnectFailure(
      .goneAway(.draining),
      detail: """
        \(shortLinks.name(of: connection.way)): the server takes no requests for now: \
        \(PeerText(goaway.reason))
        """, address: connection.link.peer)
    let hint = configuration.reconnect.hint(
      retryAfter: goaway.retryAfter, spread: goaway.spread, bits: bits())
    shortLinks.machine.turnedAway(connection.link.id, hint: hint, at: loop.now, bits: bits)
    performWays()
  }

  /// Notes why a short link ends, before its request is told.
  func abandoned(_ connection: ShortConnection, _ reason: CloseReason) {
    let link = connection.link
    guard reason != .left, reason != .closedHere else { return }
    totals.ended(reason)
    lastFailure = ConnectFailure(
      reason, detail: link.detail(of: reason), address: link.peer,
      securityFailure: link.securityFailure)
    if requests.carriedCount(by: link) > 0 {
      shortLinks?.count(connection.way) { $0.unanswered += 1 }
    }
  }

  func ended(
    _ connection: ShortConnection, _ reason: CloseReason, _ outcome: WayMachine.Outcome
  ) {
    guard let shortLinks else { return }
    let link = connection.link
    link.count(in: totals)
    shortLinks.connections.removeAll { $0 === connection }
    notifyObserver(.shortEnded(link.id, reason))
    if outcome == .failed { shortLinks.count(connection.way) { $0.failed += 1 } }
    if reason != .closedHere, reason != .left {
      link.log(.info, "A short link ended", reason.logMetadata)
    }
    shortLinks.machine.ended(link.id, outcome, at: loop.now, bits: bits)
    connectionEnded()
    updateWays()
  }

  private func allWaysFailed() {
    let failure = lastFailure ?? .unknown
    log.log(.warning, "Could not open a short link", at: loop.now) { failure.logMetadata }
    requests.hasShortLinks = takesShortLinks
    failWaiting(after: .failed) { failure.error(.connectFailed, doing: $0) }
  }

  private func armWays(_ shortLinks: ShortLinks) {
    let deadline = closing?.hasEnded == true ? .distantFuture : shortLinks.machine.deadline
    guard deadline != shortLinks.armedFor else { return }
    if let timer = shortLinks.timer { loop.cancel(timer) }
    shortLinks.timer = nil
    shortLinks.armedFor = deadline
    guard deadline != .distantFuture else { return }
    shortLinks.timer = loop.schedule(at: deadline, self, token: Timer.ways.rawValue)
  }

  func waysElapsed() {
    guard let shortLinks else { return }
    shortLinks.timer = nil
    shortLinks.armedFor = .distantFuture
    shortLinks.machine.elapsed(to: loop.driver.now)
    updateWays()
  }
}

extension ClientConfiguration {
  /// The settings of a short link.
  var shortLinkSettings: ConnectionSettings {
    // There is no dialect beside short links, so that nothing can fail.
    var settings = (try? connectionSettings()) ?? ConnectionSettings(role: .client)
    settings.isShort = true
    return settings
  }
}
