// SPDX-License-Identifier: Apache-2.0

/// Decides when a client resolves names, connects, gives up, waits, reconnects, and moves from one
/// link to another.
///
/// Its inputs are facts with the instant at which they became known; its outputs are effects. At
/// most one link, the current one, gets new requests. At most one round of connection attempts is
/// in progress. If there is a current link, the round is for its replacement, and only a complete
/// handshake moves the requests; the old link then lingers until its last response, for a limited
/// time. Attempt IDs are never reused, so that late events of an old attempt have no effect.
package struct LinkMachine: Equatable {
  /// Identifies a connection attempt and its link; never reused by one client.
  package typealias AttemptID = UInt32

  /// A server to connect to.
  package enum Target: Hashable, Sendable {
    /// A server of the client's list, by its index.
    case listed(Int)
    /// A server that a draining server has named, by a consecutive number.
    case alternative(Int)
  }

  package enum Effect: Equatable, Sendable {
    case resolve(Target, round: UInt32)
    case connect(AttemptID, address: Int)
    /// Prepare an attempt whose handshake is complete, before it is used.
    case prepare(AttemptID)
    /// Drop an attempt that timed out, lost the race or is not needed any more. If its server may
    /// have accepted it, the owner leaves the link as one that was replaced.
    case abandon(AttemptID, CloseReason)
    /// Send new requests on this link.
    case use(AttemptID)
    /// Send no new requests on this link, and close it when its last request has ended.
    case retire(AttemptID)
    /// Close a retired link whose time to linger is over.
    case expire(AttemptID)
    /// Send a ping, because the link may be dead.
    case probe(AttemptID)
    /// The link has proved itself, so that its server is known to work.
    case proven(AttemptID)
    /// Renew the credential on this link.
    case renew(AttemptID)
    /// All attempts of a round have failed.
    case roundFailed(Target)
    /// The next round begins after a delay, for the given reason.
    case wait(LinkWait)
  }

  package struct Settings: Equatable, Sendable {
    package var reconnect: ReconnectPolicy
    /// The time between starting two attempts of a round, in nanoseconds (RFC 8305: 250 ms).
    package var stagger: Int64 = 250_000_000
    /// The least time between the last address's first attempt and the only second attempt of a
    /// round, if no server has answered, in nanoseconds. The system repeats a lost packet of a
    /// connect only after 1, 3 and 7 s, so without it the end of a cut would go unnoticed for long.
    package var patience: Int64 = 1_000_000_000
    /// The timeout for a look-up, and for each attempt including its handshake, in nanoseconds.
    package var connectTimeout: Int64
    /// How long a retired link can wait for its last responses, in nanoseconds.
    package var lingering: Int64
    /// Whether each attempt is prepared before it is used.
    package var prepares: Bool

    package init(
      reconnect: ReconnectPolicy, connectTimeout: Int64, lingering: Int64,
      prepares: Bool = false
    ) {
      self.reconnect = reconnect
      self.connectTimeout = connectTimeout
      self.lingering = lingering
      self.prepares = prepares
    }
  }

  /// Whether the machine should have a link.
  enum Mode: Equatable, Sendable {
    /// There is no link, and none has been wanted yet.
    case idle
    /// There is a link, or one is being made.
    case active
    /// There is no link for the time being. On resuming, one is made if `wantsLink` is true.
    case suspended(wantsLink: Bool)
    /// There is no link until `start`: the servers do not accept this client.
    case stopped
    /// There is no link, for good.
    case closed

    /// Whether `next` can follow this mode.
    func canBecome(_ next: Mode) -> Bool {
      switch (self, next) {
      case (.idle, .active), (.idle, .suspended(wantsLink: false)), (.idle, .closed): true
      case (.active, .suspended(wantsLink: true)), (.active, .stopped), (.active, .closed): true
      case (.stopped, .active), (.stopped, .suspended(wantsLink: false)), (.stopped, .closed): true
      case (.suspended(wantsLink: false), .idle): true
      case (.suspended(wantsLink: false), .suspended(wantsLink: true)): true
      case (.suspended(wantsLink: true), .active): true
      case (.suspended, .closed): true
      case (.idle, _), (.active, _), (.suspended, _), (.stopped, _), (.closed, _): false
      }
    }
  }

  /// The state of the current round of connection attempts.
  enum Round: Equatable, Sendable {
    /// No round is in progress or planned.
    case none
    /// The next round begins at this instant; there is no current link.
    case waiting(LinkInstant)
    /// The server's name is being looked up, until this instant at the latest.
    case resolving(LinkInstant)
    /// Attempts are in progress.
    case connecting
  }

  /// Why a round takes place: to connect, or to replace the current link.
  enum Purpose: Equatable, Sendable {
    case connect
    case preferred
    case errors
    case path
    /// The credential of the current link is about to expire.
    case renewal
  }

  struct Attempt: Equatable, Sendable {
    let id: AttemptID
    let address: Int
    let limit: LinkInstant
    /// Whether its handshake is complete: its server may use it already.
    var isHeld = false
    /// Whether the application prepares it.
    var isPreparing = false
    /// Whether it has answered a request since.
    var hasWorked = false
    /// Whether the network has changed since.
    var isOfOldPath = false
  }

  /// The link that takes new requests.
  struct Current: Equatable, Sendable {
    let id: AttemptID
    var target: Target
    /// When the time without a gap between links began: this link may have replaced another one.
    let since: LinkInstant
    var hasWorked = false
    /// When the link will have lasted long enough to be proven.
    let provenAt: LinkInstant
    /// Whether the link has lasted until `provenAt`.
    var hasLasted = false
    /// Whether bytes of the server have arrived since the link's handshake.
    var isHeard = false
    /// When the link's credential expires.
    var expiresAt = LinkInstant.distantFuture
    /// Whether the credential is renewed on the link itself, and not on another one.
    var renewsInPlace = false
  }

  struct Retired: Equatable, Sendable {
    let id: AttemptID
    var until: LinkInstant
  }

  /// The failures since the last proven link.
  struct Outage: Equatable, Sendable {
    /// The first window; 0 if there was no link.
    var first: Int64 = 0
    /// The number of failed rounds and unproven links.
    var failures = 0
    /// The number of failures that widened the window.
    var growth = 0
    /// The widest window from which a delay was drawn.
    var widest: Int64 = 0
    var alternativesTried = 0
  }

  package let settings: Settings
  let watchesErrors: Bool
  private(set) var mode = Mode.idle
  var roundState = Round.none
  /// The number of the last round, and its purpose.
  package internal(set) var round: UInt32 = 0
  var purpose = Purpose.connect
  /// The server of the current or last round.
  package internal(set) var target = Target.listed(0)
  /// Whether the server of the round had not been tried in this outage before.
  var isFirstTry = false
  /// Whether the server of this round has refused the client.
  var isRefused = false
  var list: ServerList
  var current: Current?
  var retired: [Retired] = []
  var outage = Outage()
  var outcomes = OutcomeWindow()
  /// When the client next tries to fail back to a server of better priority.
  var preferredAt = LinkInstant.distantFuture
  /// When the credential of the current link is to be renewed.
  var renewAt = LinkInstant.distantFuture
  /// Alternatives that draining servers have named, and that were not tried yet.
  var alternatives: [Target] = []
  /// The number of alternatives named so far, which is the number of the next one.
  package internal(set) var alternativesNamed = 0
  /// The number of links in a row that drained after a short life.
  var shortDrains = 0
  /// The server of the last link; before the first link, the first server that was tried.
  var lastTarget: Target?
  var lastAttempt: AttemptID = 0
  var attempts: [Attempt] = []
  var addressCount = 0
  /// The address of the next attempt. After the last address, one address gets a second attempt.
  var nextAddress = 0
  /// Whether the system of a server has answered a connect of this round.
  var isHeard = false
  var nextStart = LinkInstant.distantFuture
  package internal(set) var counts = LinkCounts()
  var effects = Queue<Effect>()

  package init(servers: [ServerList.Entry], settings: Settings) {
    self.settings = settings
    watchesErrors = settings.reconnect.errorRatio != nil
    list = ServerList(servers, policy: settings.reconnect)
  }

  /// Enters another mode. Nothing else changes the mode.
  mutating func become(_ next: Mode) {
    precondition(mode.canBecome(next), "a machine that is \(mode) cannot become \(next)")
    mode = next
  }

  package mutating func nextEffect() -> Effect? {
    let effect = effects.popFirst()
    // Effects are rare, and an idle client should keep no memory for them.
    if effects.isEmpty { effects.removeAll() }
    return effect
  }
}

/// The counters of a `LinkMachine`.
package struct LinkCounts: Equatable, Sendable {
  /// The number of changes to another server, because one failed, drained or caused too many
  /// errors.
  package var failovers: UInt64 = 0
  /// The number of links that were replaced or given up before they ended.
  package var migrations: UInt64 = 0
  /// How often one of several servers began to cool down.
  package var coolDowns: UInt64 = 0
  /// The number of second attempts to connect to an address, because no server had answered.
  package var secondAttempts: UInt64 = 0
}

// MARK: - Commands

extension LinkMachine {
  /// Starts to connect, or records that a link is wanted after a suspension.
  package mutating func start(at now: LinkInstant, bits: () -> UInt64) {
    switch mode {
    case .idle, .stopped:
      become(.active)
      beginRound(at: now, bits: bits)
    case .suspended(wantsLink: false):
      become(.suspended(wantsLink: true))
    case .active, .suspended(wantsLink: true), .closed:
      break
    }
  }

  /// Handles a change of the network. Knowledge about servers is kept, but not about paths.
  ///
  /// The next round begins now, unless all servers ask clients to stay away. An existing link
  /// carries the requests until its replacement is ready, and is tested with a ping. So is an
  /// attempt that is being prepared: the next round begins once it is used or has failed. A network
  /// that changes more often than a preparation takes would else keep the client offline.
  package mutating func pathChanged(at now: LinkInstant, bits: () -> UInt64) {
    guard mode == .active else { return }
    let prepared = attempts.firstIndex { $0.isPreparing }
    if prepared == nil { abandonRound(at: now) }
    if let current { effects.append(.probe(current.id)) }
    if let prepared {
      attempts[prepared].isOfOldPath = true
      effects.append(.probe(attempts[prepared].id))
    } else {
      beginRoundOnPath(at: now, bits: bits)
    }
  }

  /// Suspends the machine: no link is wanted for now. Existing ones can linger for the given time.
  package mutating func suspend(lingering: Int64, at now: LinkInstant) {
    switch mode {
    case .idle, .stopped: become(.suspended(wantsLink: false))
    case .active: become(.suspended(wantsLink: true))
    case .suspended: break
    case .closed: return
    }
    abandonRound(at: now)
    abandonCurrent(at: now)
    let until = now + max(0, lingering)
    for index in retired.indices { retired[index].until = min(retired[index].until, until) }
    expireRetired(at: now)
  }

  /// Ends a suspension. Connects at once if a link is wanted, unless all servers ask to stay away.
  package mutating func resume(at now: LinkInstant, bits: () -> UInt64) {
    guard case .suspended(let wantsLink) = mode else { return }
    become(wantsLink ? .active : .idle)
    // During a long suspension, named alternatives become stale.
    forgetAlternatives(at: now)
    if wantsLink { beginRoundWhenAllowed(at: now, bits: bits) }
  }

  /// Replaces the servers. For each of them, `kept` has its index in the old list; nil if new.
  ///
  /// A link to a server in both lists stays current. Any other is retired at once.
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
        abandonCurrent(at: now)
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
    abandonRound(at: now)
    // New servers may accept this client.
    if mode == .stopped, hasNew { become(.active) }
    if mode == .active, current == nil { beginRoundWhenAllowed(at: now, bits: bits) }
  }

  /// Updates the current round for its server's new index in the list.
  private mutating func retarget(to place: Int) {
    target = .listed(place)
    let waiting = effects.remove { effect in
      if case .resolve = effect { true } else { false }
    }
    // A look-up that has not begun yet would use the server at the old index.
    if waiting != nil { effects.append(.resolve(target, round: round)) }
  }

  private static func place(of target: Target, _ kept: [Int?]) -> Int? {
    guard case .listed(let old) = target else { return nil }
    return kept.firstIndex(of: old)
  }

  /// Stops connecting until `start`, because the servers do not accept this client.
  package mutating func stop(at now: LinkInstant) {
    guard mode == .active else { return }
    abandonRound(at: now)
    abandonCurrent(at: now)
    become(.stopped)
  }

  /// Ends the machine for good.
  package mutating func close(at now: LinkInstant) {
    guard mode != .closed else { return }
    abandonRound(at: now)
    become(.closed)
    current = nil
    retired = []
    (preferredAt, renewAt) = (.distantFuture, .distantFuture)
  }

  /// Advances the time, and performs everything that is due.
  package mutating func elapsed(to now: LinkInstant, bits: () -> UInt64) {
    expireRetired(at: now)
    if let current, !current.hasLasted, current.provenAt <= now {
      self.current?.hasLasted = true
      if current.isHeard { worked(current.id) }
    }
    if preferredAt <= now {
      preferredAt = .distantFuture
      tryPreferred(at: now, bits: bits)
    }
    if renewAt <= now { renew(at: now, bits: bits) }
    roundElapsed(at: now, bits: bits)
  }
}
