// SPDX-License-Identifier: Apache-2.0

/// Decides over which links a client's requests go: owns the machine of its long link and that of
/// its short links, and remembers which credentials servers have refused over both.
///
/// Each fact is passed once, with the instant at which it became known; what one machine has to
/// know of the other is passed on here. The outputs are effects. Those of the long link come first,
/// because requests that it takes need no short link.
package struct ClientMachine: Equatable {
  /// Identifies a link: an attempt to make the long link, or a short link.
  package typealias ID = UInt32

  package enum Effect: Equatable, Sendable {
    case long(LinkMachine.Effect)
    case short(WayMachine.Effect)
  }

  /// The state of the client's connection, as the application sees it.
  package enum State: Equatable, Sendable {
    case idle
    case connecting(LinkMachine.Target)
    case connected(ID)
    case migrating(ID, to: LinkMachine.Target)
    case waiting(LinkInstant)
    /// Requests go over short links of the way with this index.
    case short(way: Int)
    case notAccepted(ResponseCode)
    case suspended
    case closed
  }

  package private(set) var link: LinkMachine
  package private(set) var ways: WayMachine
  /// The credentials that servers have refused over long links.
  package private(set) var refusals = CredentialRefusals()
  /// The credentials that servers have refused over short links.
  package private(set) var shortRefusals = CredentialRefusals()
  /// The number of refusals before the last renewal on the long link.
  private var refusalsBefore: UInt64 = 0

  package init(
    servers: [ServerList.Entry], _ settings: LinkMachine.Settings, ways: WayMachine.Settings
  ) {
    link = LinkMachine(servers: servers, settings: settings)
    self.ways = WayMachine(settings: ways)
  }

  package mutating func nextEffect() -> Effect? {
    guard let effect = link.nextEffect() else { return ways.nextEffect().map(Effect.short) }
    if case .roundFailed = effect { ways.roundFailed() }
    if case .abandon(let id, _) = effect { ways.trialFailed(id) }
    if case .renew = effect { refusalsBefore = refusals.count }
    return .long(effect)
  }

  /// Opens short links for `count` waiting requests that could be sent now. Call it once no effect
  /// is left.
  package mutating func want(_ count: Int) { ways.want(count) }

  /// Whether a short link may show this credential. After a final 401, a different credential
  /// clears the refusal.
  package mutating func allows(short credential: [UInt8]) -> Bool {
    shortRefusals.allows(credential)
  }

  /// Whether the machine needs to know about responses; see `LinkMachine.wantsOutcomes`.
  package var wantsOutcomes: Bool {
    mutating get { link.wantsOutcomes }
  }
}

// MARK: - What follows from facts

extension ClientMachine {
  /// Handles a fact that became known at this instant.
  package mutating func handle(_ fact: Fact, at now: LinkInstant, bits: () -> UInt64) {
    switch fact {
    case .elapsed:
      link.elapsed(to: now, bits: bits)
      ways.elapsed(to: now)
    case .wanted(let again): start(again: again, at: now, bits: bits)
    case .asked:
      shortRefusals.forget()
      if refusals.finalCode != nil {
        refusals.forget()
        link.renewAgain(at: now)
      }
    case .pathChanged:
      link.pathChanged(at: now, bits: bits)
      ways.pathChanged(at: now)
      // After that, no round begins whose failure would make requests take short links.
      if link.mode == .stopped { ways.roundFailed() }
    case .suspended(let lingering):
      link.suspend(lingering: lingering, at: now)
      ways.suspend(lingering: lingering, at: now)
    case .resumed:
      // The next link is made with another credential, so earlier refusals do not matter.
      if !link.isReplacing { refusals.forget() }
      link.resume(at: now, bits: bits)
      ways.resume(wantsLink: link.mode != .idle, at: now)
    case .serversSwitched(let entries, let kept):
      // The refusals of the old servers say nothing about new ones.
      if kept.contains(nil) { refusals.forget() }
      if kept != link.list.entries.indices.map(Optional.some) { ways.serversChanged() }
      let hadLink = link.isReplacing
      link.switchServers(to: entries, kept: kept, at: now, bits: bits)
      if hadLink, !link.isReplacing { refusals.forget() }
    case .closed:
      link.close(at: now)
      ways.close()
    case .long(let fact): handle(fact, at: now, bits: bits)
    case .short(let fact): handle(fact, at: now, bits: bits)
    }
    if link.isReplacing { ways.connected() } else { ways.lost(at: now) }
  }

  private mutating func start(again: Bool, at now: LinkInstant, bits: () -> UInt64) {
    if ways.settings.hasLongLink, again || link.mode != .stopped {
      link.start(at: now, bits: bits)
    }
    ways.start(at: now)
  }

  private mutating func handle(_ fact: Long, at now: LinkInstant, bits: () -> UInt64) {
    switch fact {
    case .resolved(let round, let addresses):
      link.resolved(round: round, addresses: addresses, at: now, bits: bits)
    case .noCredential(let round):
      link.noCredential(round: round, at: now, bits: bits)
    case .refused(let credential, let code, let known):
      refusals.refused(credential, code, since: known, hasOther: link.isReplacing)
      stopIfRefused(at: now)
    case .reached(let id): link.reached(id)
    case .turnedAway(let id, let isRefusal, let hints):
      turnedAway(id, isRefusal: isRefusal, hints, at: now)
    case .failed(let id, let reason):
      ways.trialFailed(id)
      link.forget(id)
      // An attempt that lost the race, or was dropped, reveals nothing about its server.
      if reason != .left, reason != .closedHere { link.failed(id, at: now, bits: bits) }
    case .established(let id, let terms): established(id, terms, at: now, bits: bits)
    case .accepted(let id, let terms): prepareOrUse(id, terms, at: now, bits: bits)
    case .prepared(let id, let terms): use(id, terms, at: now, bits: bits)
    case .notPrepared(let id): link.notPrepared(id, at: now, bits: bits)
    case .leftEarly(let id, let hints):
      turnedAway(id, isRefusal: false, hints, at: now)
      ways.trialFailed(id)
      link.heldLeft(id, at: now, bits: bits)
    case .peerLeft(let id, let code, let hints):
      let wasCurrent = link.isCurrent(id)
      link.peerLeft(
        id, .goneAway(code), hint: hints.stayAway, alternatives: hints.alternatives, at: now,
        bits: bits)
      if wasCurrent { stopIfRefused(at: now) }
    case .heard(let id): link.heard(id)
    case .ponged(let id):
      link.heard(id)
      ways.ponged(id)
    case .worked(let id): link.worked(id)
    case .outcome(let id, let isError): link.outcome(id, isError: isError, at: now, bits: bits)
    case .renewed(let id, let validity):
      if link.isCurrent(id) { refusals.forget() }
      link.renewed(id, validFor: validity, at: now, bits: bits)
    case .notRenewed(let id, let refusal):
      if let refusal, link.isCurrent(id) {
        refusals.refused(refusal.credential, refusal.code, since: refusalsBefore)
      }
      link.notRenewed(id, again: refusals.finalCode == nil, at: now)
    case .cannotRenew(let id): link.cannotRenew(id, at: now, bits: bits)
    case .answered: ways.answered()
    case .ended(let id, let reason, let record): ended(id, reason, record, at: now, bits: bits)
    }
  }

  private mutating func turnedAway(
    _ id: ID, isRefusal: Bool, _ hints: Hints, at now: LinkInstant
  ) {
    link.turnedAway(
      id, isRefusal: isRefusal, hint: hints.stayAway, alternatives: hints.alternatives, at: now)
  }

  private mutating func established(
    _ id: ID, _ terms: Terms, at now: LinkInstant, bits: () -> UInt64
  ) {
    refusals.forget()
    // A trial needs short links, and none is opened with a credential that was refused for good.
    if shortRefusals.finalCode == nil, link.isAttempt(id),
      ways.beginTrial(of: id, on: link.server(of: id), validFor: terms.validity, at: now)
    {
      link.hold(id)
    } else {
      prepareOrUse(id, terms, at: now, bits: bits)
    }
  }

  private mutating func prepareOrUse(
    _ id: ID, _ terms: Terms, at now: LinkInstant, bits: () -> UInt64
  ) {
    guard link.settings.prepares else { return use(id, terms, at: now, bits: bits) }
    link.prepare(id, at: now)
  }

  private mutating func use(
    _ id: ID, _ terms: Terms, at now: LinkInstant, bits: () -> UInt64
  ) {
    link.established(
      id, provenAfter: terms.proof, validFor: terms.validity, renewsInPlace: terms.renewsInPlace,
      at: now, bits: bits)
    if link.isCurrent(id) { shortRefusals.forget() }
  }

  private mutating func ended(
    _ id: ID, _ reason: CloseReason, _ record: Record, at now: LinkInstant, bits: () -> UInt64
  ) {
    let (wasCurrent, server) = (link.isCurrent(id), link.server(of: id))
    link.ended(id, reason, at: now, bits: bits)
    if record.hasAnswered {
      ways.answered()
    } else if wasCurrent, reason.isCut {
      ways.lost(at: now)
      ways.wasCut(on: server, hasRequests: record.hasRequests, life: record.life)
    }
    if wasCurrent { stopIfRefused(at: now) }
  }

  /// Stops the long link if the credential is refused for good, unless a link still takes requests.
  private mutating func stopIfRefused(at now: LinkInstant) {
    guard refusals.finalCode != nil, !link.isReplacing else { return }
    link.stop(at: now)
    ways.lost(at: now)
    // From now on requests may go over short links, as after a failed round.
    ways.roundFailed()
  }

  private mutating func handle(_ fact: Short, at now: LinkInstant, bits: () -> UInt64) {
    switch fact {
    case .credential(let credential):
      // The credential that servers refused over the long link was a different one.
      guard link.mode == .stopped, refusals.allows(credential) else { return }
      start(again: true, at: now, bits: bits)
    case .noCredential(let id): ways.noCredential(id, at: now, bits: bits)
    case .opened(let id): ways.opened(id)
    case .unfit: ways.endTrial()
    case .accepted(let credential): shortRefusals.accepted(credential)
    case .refused(let credential, let code, let known):
      shortRefusals.refused(credential, code, since: known)
    case .turnedAway(let id, let hint): ways.turnedAway(id, hint: hint, at: now, bits: bits)
    case .ended(let id, let outcome): ways.ended(id, outcome, at: now, bits: bits)
    }
  }
}

// MARK: - Questions

extension ClientMachine {
  package var state: State {
    let refusal = shortRefusals.finalCode
    let way = refusal == nil ? ways.current : nil
    return switch (link.state, way) {
    case (.connected(let id), _): .connected(id)
    case (.migrating(let id, let target), _): .migrating(id, to: target)
    case (.suspended, _): .suspended
    case (.closed, _): .closed
    case (_, let way?): .short(way: way)
    case (.idle, nil): refusal.map { .notAccepted($0) } ?? .idle
    case (.connecting(let target), nil): .connecting(target)
    case (.waiting(let until), nil): .waiting(until)
    case (.stopped, nil): .notAccepted(refusal ?? refusals.finalCode ?? .unauthenticated)
    }
  }

  /// The instant at which `.elapsed` should be handled next.
  package var deadline: LinkInstant { min(link.deadline, ways.deadline) }

  /// Whether no link takes requests until the application asks to connect.
  package var isGivenUp: Bool { link.mode == .stopped && !ways.isUsed }

  /// Whether no link takes requests now, and none is being made that will.
  package var isOffline: Bool {
    switch link.state {
    case .suspended: true
    case .waiting, .stopped: !ways.carriesRequests
    case .idle: !ways.settings.hasLongLink && !ways.carriesRequests
    case .connecting, .connected, .migrating, .closed: false
    }
  }

  /// The waiting requests that fail after a setback.
  package func failing(after setback: Setback) -> Setback.Failing {
    setback.failing(
      hasLink: link.isReplacing,
      shortLinks: ways.carriesRequests ? .open : ways.isUsed ? .paused : .unused)
  }
}

extension CloseReason {
  /// Whether the network may have cut a connection that ended for this reason.
  fileprivate var isCut: Bool {
    switch self {
    case .closedByPeer, .noResponse, .heartbeatLost, .transport, .securityFailed: true
    case .violation(let violation): violation.rule == .truncatedFrame
    default: false
    }
  }
}
