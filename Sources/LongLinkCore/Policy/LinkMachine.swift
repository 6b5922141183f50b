// SPDX-License-Identifier: Apache-2.0

/// Decides when a client resolves, connects, gives up, waits, connects again, and moves from one
/// link to another.
///
/// Facts go in with the instant at which they became known, effects come out. At most one link, the
/// current one, takes new requests. At most one round of connects is under way; while there is a
/// current link the round is to replace it, and only a complete handshake moves the requests: the
/// link that is left then lingers until its last answer, within a bound. Attempts are named once
/// and for all, so that late word of an old one finds nothing to act on.
package struct LinkMachine: Equatable {
  /// Names one connect, and the link that comes of it; never used twice by one client.
  package typealias AttemptID = UInt32

  /// A server to connect to.
  package enum Target: Hashable, Sendable {
    /// By its place in the client's list.
    case listed(Int)
    /// One that a draining server has named; they are numbered through.
    case alternative(Int)
  }

  package enum Effect: Equatable, Sendable {
    case resolve(Target, round: UInt32)
    case connect(AttemptID, address: Int)
    /// Close an attempt: it took too long, or it lost the race or is not wanted any more.
    case abandon(AttemptID, CloseReason)
    /// New requests go to this link.
    case use(AttemptID)
    /// No new requests go to this link, which is closed when its last one has ended.
    case retire(AttemptID)
    /// Close a link that was retired and has lingered for too long.
    case expire(AttemptID)
    /// Ask for a sign of life: the link may be dead.
    case probe(AttemptID)
    /// The link has worked for the first time.
    case proven(AttemptID)
    /// All attempts of a round have failed.
    case roundFailed(Target)
    /// The next round begins later, for this reason.
    case wait(LinkWait)
  }

  package struct Settings: Equatable, Sendable {
    package var reconnect: ReconnectPolicy
    package var servers: ServerPolicy
    /// Between the starts of two attempts of a round, in nanoseconds (RFC 8305 recommends 250 ms).
    package var stagger: Int64 = 250_000_000
    /// How long a look-up, and then each attempt with its handshake, may take, in nanoseconds.
    package var connectTimeout: Int64
    /// How long a link that was retired may wait for its last answers, in nanoseconds.
    package var lingering: Int64

    package init(
      reconnect: ReconnectPolicy, servers: ServerPolicy, connectTimeout: Int64, lingering: Int64
    ) {
      self.reconnect = reconnect
      self.servers = servers
      self.connectTimeout = connectTimeout
      self.lingering = lingering
    }
  }

  /// What is wanted of the machine.
  enum Mode: Equatable, Sendable {
    /// No link. Can become: active, suspended, closed.
    case idle
    /// A link. Can become: suspended, closed.
    case active
    /// No link for the time being. Can become: idle, active, closed.
    case suspended(wantsLink: Bool)
    /// Nothing, for good.
    case closed
  }

  /// Where the connects stand.
  enum Round: Equatable, Sendable {
    /// None are under way or planned.
    case none
    /// The next ones begin at this instant; there is no current link.
    case waiting(LinkInstant)
    /// The server's name is being looked up, until this instant.
    case resolving(LinkInstant)
    /// Attempts are under way.
    case connecting
  }

  /// Why a round replaces the current link, or that there is none.
  enum Purpose: Equatable, Sendable {
    case connect
    case preferred
    case errors
    case path
  }

  struct Attempt: Equatable, Sendable {
    let id: AttemptID
    let limit: LinkInstant
  }

  /// The link that takes new requests.
  struct Current: Equatable, Sendable {
    let id: AttemptID
    var target: Target
    let since: LinkInstant
    var hasWorked = false
    /// When it has lived through a heartbeat interval.
    let provenAt: LinkInstant
  }

  struct Retired: Equatable, Sendable {
    let id: AttemptID
    var until: LinkInstant
  }

  /// What went wrong since a link last worked.
  struct Outage: Equatable, Sendable {
    /// The first window; 0 where there was no link.
    var first: Int64 = 0
    /// Failed rounds, and links that ended before they had worked.
    var failures = 0
    /// Those of them that widened the window.
    var growth = 0
    /// The widest window that was drawn from.
    var widest: Int64 = 0
    var alternativesTried = 0
  }

  package let settings: Settings
  private let watchesErrors: Bool
  var mode = Mode.idle
  var roundState = Round.none
  /// The number of the last round, and what it was for.
  package internal(set) var round: UInt32 = 0
  var purpose = Purpose.connect
  /// The server that is being tried, or was last.
  package internal(set) var target = Target.listed(0)
  var list: ServerList
  var current: Current?
  var retired: [Retired] = []
  var outage = Outage()
  var outcomes = OutcomeWindow()
  /// When a better server is tried.
  var preferredAt = LinkInstant.distantFuture
  /// Servers that a draining one has named and that were not tried yet.
  var alternatives: [Target] = []
  /// How many of them there have been; the next one gets this number.
  package internal(set) var alternativesNamed = 0
  /// Links in a row that drained without having lived for long.
  var shortDrains = 0
  /// The server of the last link, or the first that was tried.
  var lastTarget: Target?
  var lastAttempt: AttemptID = 0
  var attempts: [Attempt] = []
  var addressCount = 0
  var nextAddress = 0
  var nextStart = LinkInstant.distantFuture
  package internal(set) var counts = LinkCounts()
  var effects = Queue<Effect>()

  package init(servers: [ServerList.Entry], settings: Settings) {
    self.settings = settings
    watchesErrors = settings.servers.errorRatio != nil
    list = ServerList(servers, policy: settings.servers)
  }

  package mutating func nextEffect() -> Effect? {
    let effect = effects.popFirst()
    // They come seldom: an idle client keeps no memory for them.
    if effects.isEmpty { effects.removeAll() }
    return effect
  }
}

/// What the machine counts.
package struct LinkCounts: Equatable, Sendable {
  /// Links to another server than the one before, since that one failed, drained or answered badly.
  package var failovers: UInt64 = 0
  /// Links that were left for another one before they had ended.
  package var migrations: UInt64 = 0
  /// Times that a server of several began to cool down.
  package var coolDowns: UInt64 = 0
}

// MARK: - What it shows

extension LinkMachine {
  /// Where the client's connection stands.
  package enum State: Equatable, Sendable {
    case idle
    case connecting(Target)
    case connected(AttemptID)
    /// There is a link, and another one to replace it is being made.
    case migrating(AttemptID, to: Target)
    case waiting(LinkInstant)
    case suspended
    case closed
  }

  package var state: State {
    switch mode {
    case .idle: return .idle
    case .suspended: return .suspended
    case .closed: return .closed
    case .active: break
    }
    switch (roundState, current) {
    case (.none, let link?), (.waiting, let link?): return .connected(link.id)
    case (.resolving, let link?), (.connecting, let link?): return .migrating(link.id, to: target)
    case (.resolving, nil), (.connecting, nil): return .connecting(target)
    case (.waiting(let until), nil): return .waiting(until)
    case (.none, nil): return .idle
    }
  }

  /// Failed rounds, and links that ended before they had worked, since a link worked.
  package var failures: Int { outage.failures }

  /// Whether a round replaces a link that goes on meanwhile.
  package var isReplacing: Bool { current != nil }

  /// Whether new requests go to this link.
  package func isCurrent(_ attempt: AttemptID) -> Bool { current?.id == attempt }

  /// Whether it makes a difference to tell of answers: only that of the first one does, unless an
  /// error ratio is watched.
  ///
  /// It is asked for each answer, and mutating only so that a machine which a class holds is looked
  /// at in place and not copied.
  package var wantsOutcomes: Bool {
    mutating get { watchesErrors || current?.hasWorked == false }
  }

  /// When `elapsed(to:)` wants to be called.
  package var deadline: LinkInstant {
    var earliest = retired.reduce(LinkInstant.distantFuture) { min($0, $1.until) }
    if let current, !current.hasWorked { earliest = min(earliest, current.provenAt) }
    earliest = min(earliest, preferredAt)
    return switch roundState {
    case .none: earliest
    case .waiting(let until), .resolving(let until): min(earliest, until)
    case .connecting: attempts.reduce(min(earliest, nextStart)) { min($0, $1.limit) }
    }
  }
}

// MARK: - Commands

extension LinkMachine {
  /// A link is wanted.
  package mutating func start(at now: LinkInstant, bits: () -> UInt64) {
    switch mode {
    case .idle:
      mode = .active
      beginRound(at: now, bits: bits)
    case .suspended:
      mode = .suspended(wantsLink: true)
    case .active, .closed:
      break
    }
  }

  /// The network has changed: what is known of servers stays, what is known of paths does not.
  ///
  /// The next round begins now, unless all servers ask to be left alone. A link that is up carries
  /// the requests until another is made; it is asked for a sign of life.
  package mutating func pathChanged(at now: LinkInstant, bits: () -> UInt64) {
    guard mode == .active else { return }
    abandonRound()
    guard let current else {
      beginRoundWhenAllowed(at: now, bits: bits)
      return
    }
    effects.append(.probe(current.id))
    // It may be one to a server that was named, while all of the list ask to be left alone.
    if list.mayAskAt <= now { beginRound(at: now, for: .path, bits: bits) }
  }

  /// No link is wanted for the time being; those that are up may linger for so long.
  package mutating func suspend(lingering: Int64, at now: LinkInstant) {
    switch mode {
    case .idle: mode = .suspended(wantsLink: false)
    case .active: mode = .suspended(wantsLink: true)
    case .suspended: break
    case .closed: return
    }
    abandonRound()
    leaveCurrent(at: now)
    let until = now + max(0, lingering)
    for index in retired.indices { retired[index].until = min(retired[index].until, until) }
    expireRetired(at: now)
  }

  /// A link is wanted again, if one was: at once, unless all servers ask to be left alone.
  package mutating func resume(at now: LinkInstant, bits: () -> UInt64) {
    guard case .suspended(let wantsLink) = mode else { return }
    mode = wantsLink ? .active : .idle
    // It may have been a long time.
    forgetAlternatives(at: now)
    if wantsLink { beginRoundWhenAllowed(at: now, bits: bits) }
  }

  /// Takes other servers; `kept` tells for each of them its place in the old list, if it had one.
  ///
  /// A link to a server that is in both lists stays. Any other is left at once.
  package mutating func switchServers(
    to entries: [ServerList.Entry], kept: [Int?], at now: LinkInstant, bits: () -> UInt64
  ) {
    guard mode != .closed else { return }
    list.replace(with: entries, kept: kept)
    alternatives = []
    lastTarget = nil
    preferredAt = .distantFuture
    let hasNew = kept.contains(nil)
    if hasNew { outage = Outage() }
    if let link = current {
      if let place = LinkMachine.place(of: link.target, kept) {
        current?.target = .listed(place)
        lastTarget = .listed(place)
        armPreferred(at: now, bits: bits)
      } else {
        leaveCurrent(at: now)
        counts.migrations += 1
      }
    }
    switch roundState {
    case .waiting where !hasNew: return
    case .resolving, .connecting:
      if let place = LinkMachine.place(of: target, kept) {
        retarget(to: place)
        return
      }
    case .none, .waiting: break
    }
    abandonRound()
    if mode == .active, current == nil { beginRoundWhenAllowed(at: now, bits: bits) }
  }

  /// The server of the round that is under way has another place in the list now.
  private mutating func retarget(to place: Int) {
    target = .listed(place)
    let waiting = effects.remove { effect in
      if case .resolve = effect { true } else { false }
    }
    // A look-up that has not begun yet would be made for whoever stands in the old place.
    if waiting != nil { effects.append(.resolve(target, round: round)) }
  }

  private static func place(of target: Target, _ kept: [Int?]) -> Int? {
    guard case .listed(let old) = target else { return nil }
    return kept.firstIndex(of: old)
  }

  /// Nothing is wanted any more.
  package mutating func close() {
    abandonRound()
    mode = .closed
    current = nil
    retired = []
    preferredAt = .distantFuture
  }

  /// Tells of the passing of time.
  package mutating func elapsed(to now: LinkInstant, bits: () -> UInt64) {
    expireRetired(at: now)
    if let current, current.provenAt <= now { worked(current.id) }
    if preferredAt <= now {
      preferredAt = .distantFuture
      tryPreferred(at: now, bits: bits)
    }
    roundElapsed(at: now, bits: bits)
  }
}
