// SPDX-License-Identifier: Apache-2.0

/// Decides when a client's requests go over short links, over which of them, and how many at once.
///
/// It stands beside the `LinkMachine`, which meanwhile goes on to make the long link with its
/// back-off; the `ClientMachine` owns both. Requests take short links after the first failed round
/// of an outage, or once the connect bound has passed without a link, and until a link is
/// established. Without a long link among the ways they always do. Each short link carries one
/// request, which is chosen when it is open: until then the request waits with all others, in their
/// order.
///
/// Some networks allow a long link, and cut it soon after or at its first request. After a link was
/// cut that never answered, requests take short links at once, and the next long link stands a
/// trial: it takes requests once it has lived for a while without them, and has then answered a
/// ping. A link that has answered a request ends the suspicion.
///
/// Its inputs are facts with the instant at which they became known; its outputs are effects. On a
/// change of the network it forgets everything that it has learned.
package struct WayMachine: Equatable {
  /// Identifies a short link; never reused by one client, and never that of a long link.
  package typealias ID = UInt32

  package enum Effect: Equatable, Sendable {
    /// Open a short link over this way.
    case open(ID, way: Int)
    /// Close a short link that is not needed any more.
    case abandon(ID)
    /// No way of short links could be opened: requests that do not wait fail.
    case allFailed
    /// The time of this long link's trial is over: ping it.
    case ping(ID)
    /// The trial of this long link is over: it takes requests.
    case passed(ID)
  }

  private enum Mode: Equatable, Sendable {
    case active
    case suspended
    case closed
  }

  private struct ShortLink: Equatable, Sendable {
    let id: ID
    /// The choice of a way for which the short link was opened.
    let choice: UInt32
    var isOpen = false
  }

  /// The bit that is set in the IDs of short links.
  package static let idBit: ID = 0x8000_0000

  package let settings: Settings
  private var mode = Mode.active
  private var hasLink = false
  /// Whether requests take short links at present.
  package private(set) var usesShortLinks: Bool
  /// When requests begin to take short links, if there is no long link by then.
  private var boundAt = LinkInstant.distantFuture
  private var trial = LinkTrial()
  private var links: [ShortLink] = []
  private var lastID: ID = 0
  /// The index of the way that the next short link takes.
  package private(set) var way = 0
  /// The number of the current choice of a way. Reports of short links of earlier choices are
  /// ignored.
  private var choice: UInt32 = 0
  /// The number of requests in a row over `way` that got no answer.
  private var silences = 0
  /// The number of `silences` after which a way counts as dead, as behind a portal's login page.
  private static let mostSilences = 3
  /// The number of ways that have failed since a short link last worked.
  private var failed = 0
  /// How often all ways have failed in a row.
  private var failures = 0
  /// When the next short link may be opened.
  private var pausedUntil: LinkInstant?
  /// When short links that still linger in a suspension are closed.
  private var expiresAt = LinkInstant.distantFuture
  /// Whether a short link could be opened over `way` since it was chosen.
  private var isProven = false
  private var effects = Queue<Effect>()

  package init(settings: Settings) {
    precondition(settings.hasLongLink || settings.ways > 0, "a client needs a way")
    self.settings = settings
    usesShortLinks = !settings.hasLongLink
  }

  package mutating func nextEffect() -> Effect? {
    let effect = effects.popFirst()
    if effects.isEmpty { effects.removeAll() }
    return effect
  }

  /// The way that requests take now; nil if they take none, or no short link could be opened yet.
  package var current: Int? { usesShortLinks && isProven && mode == .active ? way : nil }

  /// Whether short links may carry requests, so that these need not wait for the long link.
  package var isUsed: Bool { settings.ways > 0 && usesShortLinks && mode == .active }

  /// Whether short links carry requests, or are tried: they are used and not paused.
  package var carriesRequests: Bool { isUsed && pausedUntil == nil }

  /// The number of short links that are open or being opened.
  package var count: Int { links.count }

  /// Whether a short link is still being opened, and still needed.
  package func isOpening(_ id: ID) -> Bool { links.contains { $0.id == id && !$0.isOpen } }

  /// When `elapsed(to:)` should be called.
  package var deadline: LinkInstant {
    guard mode != .closed else { return .distantFuture }
    return min(boundAt, trial.end, pausedUntil ?? .distantFuture, expiresAt)
  }
}

// MARK: - The long link

extension WayMachine {
  /// Records that a link is wanted: the connect bound starts to run, unless it runs already.
  package mutating func start(at now: LinkInstant) {
    guard mode == .active else { return }
    armBound(at: now)
  }

  /// Handles the failure of a round of attempts to make the long link.
  package mutating func roundFailed() {
    guard !hasLink, mode == .active else { return }
    useShortLinks()
  }

  /// Begins the trial of a long link if it needs one, and returns whether it does: it takes
  /// requests only after `passed`. A link that replaces another one needs no trial, and none does
  /// while short links do not work.
  ///
  /// `server` is the server's index in the list; nil for an alternative. It accepts the link's
  /// credential for `validity` nanoseconds; nil for no end.
  package mutating func beginTrial(
    of link: ID, on server: Int?, validFor validity: Int64?, at now: LinkInstant
  ) -> Bool {
    guard !hasLink, carriesRequests, settings.hasLongLink, silences < WayMachine.mostSilences
    else { return false }
    return trial.begin(
      of: link, on: server, bound: settings.connectBound, validFor: validity, at: now)
  }

  /// Whether a long link stands a trial.
  package var isTrying: Bool { trial.link != nil }

  /// Whether the long link with this ID stands a trial.
  package func isTrying(_ link: ID) -> Bool { trial.link == link }

  /// Handles that a long link has ended in its trial, or is not needed any more.
  package mutating func trialFailed(_ link: ID) {
    if trial.link == link { trial.finish() }
  }

  /// Handles a long link's answer to a ping.
  package mutating func ponged(_ link: ID) {
    if trial.awaitsPong(of: link) { endTrial() }
  }

  /// Ends a trial early, because short links cannot carry the requests: a doubtful long link is
  /// better than none.
  package mutating func endTrial() {
    if let link = trial.finish() { effects.append(.passed(link)) }
  }

  /// Records that the long link takes requests.
  package mutating func connected() {
    guard !hasLink else { return }
    hasLink = true
    trial.finish()
    boundAt = .distantFuture
    guard settings.hasLongLink else { return }
    usesShortLinks = false
    forget()
    abandonOpening()
  }

  /// Records that no long link takes requests any more.
  package mutating func lost(at now: LinkInstant) {
    guard hasLink else { return }
    hasLink = false
    guard mode == .active else { return }
    armBound(at: now)
  }

  /// Records that a long link has answered a request, so that the network does not cut all of them.
  package mutating func answered() { trial.forgetCuts() }

  /// Records that the network seems to have cut a long link that never answered. This shows nothing
  /// if no request was sent over the link and it lived for longer than the connect bound.
  package mutating func wasCut(on server: Int?, hasRequests: Bool, life: Int64) {
    guard settings.ways > 0, hasRequests || life < settings.connectBound else { return }
    trial.wasCut(on: server, bound: settings.connectBound)
    guard mode == .active, !hasLink else { return }
    useShortLinks()
  }

  /// Forgets the cuts of links, because the servers have changed.
  package mutating func serversChanged() { trial.forgetCuts() }

  private mutating func armBound(at now: LinkInstant) {
    guard settings.ways > 0, !usesShortLinks, !hasLink, boundAt == .distantFuture else { return }
    boundAt = now + settings.connectBound
  }

  private mutating func useShortLinks() {
    boundAt = .distantFuture
    guard settings.ways > 0, !usesShortLinks else { return }
    usesShortLinks = true
  }
}

// MARK: - Short links

extension WayMachine {
  /// Opens short links for `count` waiting requests that could be sent now. Call it after every
  /// other fact, too.
  package mutating func want(_ count: Int) {
    guard carriesRequests else { return }
    var opening = links.count { !$0.isOpen }
    while opening < count, links.count < settings.limit {
      lastID = (lastID &+ 1) & ~WayMachine.idBit
      let id = lastID | WayMachine.idBit
      links.append(ShortLink(id: id, choice: choice))
      effects.append(.open(id, way: way))
      opening += 1
    }
  }

  /// Handles that a short link can be written to. The owner gives it a request, or gives it up.
  package mutating func opened(_ id: ID) {
    guard let index = links.firstIndex(where: { $0.id == id }) else { return }
    links[index].isOpen = true
    guard links[index].choice == choice, usesShortLinks else { return }
    isProven = true
  }

  /// Handles the end of a short link.
  package mutating func ended(
    _ id: ID, _ outcome: Outcome, at now: LinkInstant, bits: () -> UInt64
  ) {
    guard let index = links.firstIndex(where: { $0.id == id }) else { return }
    let link = links.remove(at: index)
    if link.choice == choice, usesShortLinks {
      switch outcome {
      case .failed: wayFailed(at: now, bits: bits)
      case .worked: (failed, failures, silences) = (0, 0, 0)
      case .silent: waySilent()
      case .unused: break
      }
    }
  }

  /// Handles a server that has refused the request of a short link, because it takes none for now.
  /// `hint` is how long it asks the client to stay away, in nanoseconds; nil for no hint.
  package mutating func turnedAway(
    _ id: ID, hint: Int64?, at now: LinkInstant, bits: () -> UInt64
  ) {
    guard let link = links.first(where: { $0.id == id }), link.choice == choice, usesShortLinks
    else { return }
    wayFailed(hint: hint, at: now, bits: bits)
  }

  /// Removes a short link for which the application has no credential. No way is at fault.
  package mutating func noCredential(_ id: ID, at now: LinkInstant, bits: () -> UInt64) {
    guard let index = links.firstIndex(where: { $0.id == id }) else { return }
    let link = links.remove(at: index)
    // Several short links ask for the credential at once, and get the same answer.
    guard link.choice == choice, carriesRequests else { return }
    pause(at: now, bits: bits)
  }

  /// Notes that a request got no answer. After several, the next ones take another way.
  private mutating func waySilent() {
    failed = 0
    silences += 1
    guard silences >= WayMachine.mostSilences else { return }
    endTrial()
    if settings.ways > 1 { leaveWay() }
  }

  private mutating func leaveWay() {
    choice &+= 1
    isProven = false
    silences = 0
    way = (way + 1) % settings.ways
  }

  private mutating func wayFailed(
    hint: Int64? = nil, at now: LinkInstant, bits: () -> UInt64
  ) {
    leaveWay()
    failed += 1
    guard failed >= settings.ways else { return }
    failed = 0
    way = 0
    pause(atLeast: hint ?? 0, at: now, bits: bits)
  }

  private mutating func pause(
    atLeast hint: Int64 = 0, at now: LinkInstant, bits: () -> UInt64
  ) {
    failures += 1
    let window = settings.reconnect.window(first: 0, failures: failures)
    // The delay is never zero: a way that fails at once would be tried without end.
    let delay = max(window / 2, ReconnectPolicy.even(within: window, bits: bits()))
    pausedUntil = now + max(delay, hint)
    if isTrying { endTrial() } else { effects.append(.allFailed) }
  }

  /// Closes the short links that carry no request yet.
  private mutating func abandonOpening() {
    effects.removeAll { if case .open = $0 { true } else { false } }
    for link in links where !link.isOpen { effects.append(.abandon(link.id)) }
    links.removeAll { !$0.isOpen }
  }

  /// Forgets what was learned about the ways.
  private mutating func forget() {
    choice &+= 1
    isProven = false
    silences = 0
    way = 0
    failed = 0
    failures = 0
    pausedUntil = nil
  }
}

// MARK: - Commands

extension WayMachine {
  /// Handles a change of the network: what was learned on the old one does not count any more.
  package mutating func pathChanged(at now: LinkInstant) {
    guard mode == .active else { return }
    forget()
    trial = LinkTrial()
    abandonOpening()
    boundAt = .distantFuture
    usesShortLinks = !settings.hasLongLink
    armBound(at: now)
  }

  /// Suspends the machine: it opens no short links for now. Those that carry a request linger for
  /// the given time, in nanoseconds.
  package mutating func suspend(lingering: Int64, at now: LinkInstant) {
    guard mode == .active else { return }
    mode = .suspended
    forget()
    trial.finish()
    abandonOpening()
    boundAt = .distantFuture
    usesShortLinks = !settings.hasLongLink
    expiresAt = links.isEmpty ? .distantFuture : now + max(0, lingering)
    expire(at: now)
  }

  /// Ends a suspension.
  package mutating func resume(wantsLink: Bool, at now: LinkInstant) {
    guard mode == .suspended else { return }
    mode = .active
    expiresAt = .distantFuture
    if wantsLink { armBound(at: now) }
  }

  /// Ends the machine for good. The owner closes short links that carry a request.
  package mutating func close() {
    abandonOpening()
    trial.finish()
    mode = .closed
  }

  /// Advances the time, and performs everything that is due.
  package mutating func elapsed(to now: LinkInstant) {
    if boundAt <= now { useShortLinks() }
    if let link = trial.elapsed(to: now) { effects.append(.ping(link)) }
    if let until = pausedUntil, until <= now { pausedUntil = nil }
    expire(at: now)
  }

  private mutating func expire(at now: LinkInstant) {
    guard expiresAt <= now else { return }
    expiresAt = .distantFuture
    for link in links { effects.append(.abandon(link.id)) }
    links = []
  }
}
