// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLinkCore
import LongLinkDriver
@_spi(Loop) import LongLinkTransport

/// The short links of a client, on its loop. Opens them as the machine decides, and counts their
/// outcomes.
final class ShortLinks {
  private unowned let core: ClientCore
  private let openers: [any ShortLinkOpener]
  private(set) var connections: [ShortConnection] = []
  /// The last refusal that counts of a credential over short links.
  private var refusal: ConnectFailure?
  /// The counters of short links, by the index of their way.
  private var counted: [ShortLinkCounters]

  /// Makes the short links of a client; nil if no short link is among the ways.
  init?(for core: ClientCore) {
    openers = core.configuration.ways.compactMap(\.opener)
    guard !openers.isEmpty else { return nil }
    self.core = core
    counted = openers.map { _ in ShortLinkCounters() }
  }

  func name(of way: Int) -> String { openers[way].name }

  /// Changes the counters of a way.
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

  /// Whether any short link has output that was not written yet.
  var hasWork: Bool { connections.contains { !$0.link.connection.outbox.isEmpty } }

  func closeAll(aborts: Bool) {
    for connection in connections {
      if aborts { connection.link.close(.closedHere) } else { connection.link.shutDown() }
    }
  }
}

// MARK: - Opening

extension ShortLinks {
  /// Opens a short link, as soon as the application has given a credential.
  func open(_ id: WayMachine.ID, _ way: Int) {
    count(way) { $0.begun += 1 }
    let bound = LoopBound(core, on: core.loop)
    core.withCredential { bound.value.shortLinks?.answered($0, id, way) }
  }

  private func answered(
    _ result: Result<[UInt8], ConnectFailure>, _ id: WayMachine.ID, _ way: Int
  ) {
    // The short link may have been given up meanwhile, for example by a suspension.
    guard core.machine.ways.isOpening(id) else { return }
    switch result {
    case .success(let credential):
      open(id, way, with: credential)
      core.tell(.short(.credential(credential)))
    case .failure(let failure):
      count(way) { $0.failed += 1 }
      core.lastFailure = failure
      core.tell(.short(.noCredential(id)))
    }
  }

  private func open(_ id: WayMachine.ID, _ way: Int, with credential: [UInt8]) {
    guard core.machine.allows(short: credential) else {
      // In a job of its own. Otherwise, a handler that makes its request again at once would come
      // back here within this call, without end.
      let bound = LoopBound(core, on: core.loop)
      return core.loop.execute { bound.value.shortLinks?.giveUp(id) }
    }
    do throws(ConnectFailure) {
      let link = try link(id, way, with: credential)
      let connection = ShortConnection(
        link, way: way, credential: credential, of: self, core: core)
      connections.append(connection)
      link.start(for: connection)
    } catch {
      count(way) { $0.failed += 1 }
      core.lastFailure = error
      core.tell(.short(.ended(id, .failed)))
    }
  }

  private func link(
    _ id: WayMachine.ID, _ way: Int, with credential: [UInt8]
  ) throws(ConnectFailure) -> Link {
    let (opener, configuration) = (openers[way], core.configuration)
    guard
      credential.isEmpty || opener.isConfidential
        || configuration.identity.sendsCredentialUnencrypted
    else { throw .unencryptedCredential(for: nil, way: opener.name) }
    do throws(SocketError) {
      let transport = try opener.open(on: core.loop)
      var settings = configuration.shortLinkSettings
      settings.credential = credential
      // Answers of a client without a principal are kept under it.
      settings.clientID = core.clientID
      configuration.record(on: core.loop)
      return Link(
        id: id, transport: transport, isConnected: false, settings: settings, on: core.loop,
        log: core.log, way: opener.name, observers: configuration.observers)
    } catch {
      throw ConnectFailure(
        .transport(error.errno), detail: "\(opener.name): \(error.reason)", address: error.address)
    }
  }

  /// Gives up a short link whose credential was refused for good, and fails the requests that wait
  /// for one. If a long link stands a trial, it takes these requests instead.
  private func giveUp(_ id: WayMachine.ID) {
    guard core.machine.ways.isOpening(id) else { return }
    if let refusal { core.lastFailure = refusal }
    if !core.endTrial() { core.failWaiting(after: .refusedOverShortLinks, core.notConnected) }
    core.tell(.short(.ended(id, .unused)))
  }

  /// Closes a short link that is not needed any more.
  func abandon(_ id: WayMachine.ID) {
    connections.first { $0.link.id == id }?.link.close(.left)
  }

  /// Handles that no way of short links could be opened.
  func allFailed() {
    let failure = core.lastFailure ?? .unknown
    core.log.log(.warning, "Could not open a short link", at: core.loop.now) {
      failure.logMetadata
    }
    core.failWaiting(after: .failed) { failure.error(.connectFailed, doing: $0) }
  }
}

// MARK: - What happened on a short link

extension ShortLinks {
  /// Handles that a server has refused the credential of a short link.
  func refused(_ goaway: GoAway, on connection: ShortConnection) {
    let code = ResponseCode(wire: goaway.code)
    let failure = ConnectFailure(
      .goneAway(code),
      detail: """
        \(name(of: connection.way)): \
        \(ConnectFailure.text(ofRefusal: code, of: connection.credential)): \
        \(PeerText(goaway.reason))
        """, address: connection.link.peer, recording: connection.link.recording)
    core.lastFailure = failure
    if core.machine.shortRefusals.counts(since: connection.refusalsBefore) { refusal = failure }
    core.tell(.short(.refused(connection.credential, code, since: connection.refusalsBefore)))
  }

  /// Handles a server that takes no requests for now. The machine pauses or takes another way,
  /// before the request of this link is sent again.
  func turnedAway(_ goaway: GoAway, on connection: ShortConnection) {
    core.lastFailure = ConnectFailure(
      .goneAway(.draining),
      detail: """
        \(name(of: connection.way)): the server takes no requests for now: \
        \(PeerText(goaway.reason))
        """, address: connection.link.peer, recording: connection.link.recording)
    let hint = core.configuration.reconnect.hint(
      retryAfter: goaway.retryAfter, spread: goaway.spread, bits: core.bits())
    core.tell(.short(.turnedAway(connection.link.id, hint: hint)))
  }

  /// Notes why a short link ends, before its request is told.
  func abandoned(_ connection: ShortConnection, _ reason: CloseReason) {
    guard reason != .left, reason != .closedHere else { return }
    let link = connection.link
    core.totals.ended(reason)
    core.lastFailure = ConnectFailure(
      reason, detail: link.ending.detail(of: reason), address: link.peer,
      securityFailure: link.securityFailure, recording: link.recording)
    if core.requests.carriedCount(by: link) > 0 { count(connection.way) { $0.unanswered += 1 } }
  }

  func ended(
    _ connection: ShortConnection, _ reason: CloseReason, _ outcome: WayMachine.Outcome
  ) {
    let link = connection.link
    link.count(in: core.totals)
    connections.removeAll { $0 === connection }
    core.notifyObserver(.shortEnded(link.id, reason))
    if outcome == .failed { count(connection.way) { $0.failed += 1 } }
    if reason != .closedHere, reason != .left {
      link.log(.info, "A short link ended", reason.logMetadata)
    }
    core.tell(.short(.ended(link.id, outcome)))
  }
}

extension ClientConfiguration {
  /// The settings of a short link's connection.
  fileprivate var shortLinkSettings: ConnectionSettings {
    // A client with short links has no dialect, so this cannot fail.
    var settings = (try? connectionSettings()) ?? ConnectionSettings(role: .client)
    settings.isShort = true
    return settings
  }
}
