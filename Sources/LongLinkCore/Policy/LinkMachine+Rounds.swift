// SPDX-License-Identifier: Apache-2.0

/// Rounds of connection attempts to one server: look-up, race, and the delay after a failure.
extension LinkMachine {
  /// Begins a round, or first waits while all servers ask clients to stay away.
  mutating func beginRoundWhenAllowed(at now: LinkInstant, bits: () -> UInt64) {
    if let hint = commonHint(at: now) {
      wait(hint, window: hint, .goaway, at: now)
    } else {
      beginRound(at: now, bits: bits)
    }
  }

  /// Begins a round after a change of the network.
  mutating func beginRoundOnPath(at now: LinkInstant, bits: () -> UInt64) {
    guard current != nil else { return beginRoundWhenAllowed(at: now, bits: bits) }
    // All servers of the list may ask to stay away, if the link is to a named alternative.
    guard list.mayAskAt <= now else { return rearmPreferred(at: now, bits: bits) }
    beginRound(at: now, for: .path, bits: bits)
  }

  /// Begins a round with the given server, or else with the one that the list prefers.
  mutating func beginRound(
    at now: LinkInstant, for purpose: Purpose = .connect, to server: Int? = nil,
    bits: () -> UInt64
  ) {
    round += 1
    self.purpose = purpose
    attempts = []
    isRefused = false
    if let server {
      target = .listed(server)
    } else if let present = replacement(for: purpose, at: now) {
      target = present
    } else if purpose == .connect, let alternative = takeAlternative() {
      target = alternative
    } else {
      target = .listed(list.choice(at: now, bits: bits))
    }
    if case .listed(let index) = target { isFirstTry = list.tried(index) }
    if lastTarget == nil { lastTarget = target }
    roundState = .resolving(now + settings.connectTimeout)
    effects.append(.resolve(target, round: round))
  }

  /// Returns the next server that a draining one has named. Servers could name each other forever,
  /// so that after a number of them the outage continues with the list.
  private mutating func takeAlternative() -> Target? {
    guard !alternatives.isEmpty else { return nil }
    guard outage.alternativesTried < Wire.alternativesLimit else {
      alternatives = []
      return nil
    }
    outage.alternativesTried += 1
    return alternatives.removeFirst()
  }

  /// Ends the round without a result. Pending look-ups and attempts are dropped.
  mutating func abandonRound(at now: LinkInstant) {
    effects.removeAll { effect in
      switch effect {
      case .resolve, .connect, .prepare: true
      case .abandon, .use, .retire, .expire, .probe, .proven, .renew, .roundFailed, .wait: false
      }
    }
    for attempt in attempts { abandon(attempt, .left, at: now) }
    attempts = []
    nextStart = .distantFuture
    roundState = .none
  }

  /// Drops an attempt. If its handshake is complete, its link ends as one that was replaced, since
  /// its server may have sent something over it.
  private mutating func abandon(_ attempt: Attempt, _ reason: CloseReason, at now: LinkInstant) {
    effects.append(.abandon(attempt.id, reason))
    if attempt.isHeld { linger(attempt.id, at: now) }
  }

  /// Drops a link whose attempt was dropped before its handshake was complete.
  private mutating func dropLate(_ attempt: AttemptID, at now: LinkInstant) {
    guard current?.id != attempt, !retired.contains(where: { $0.id == attempt }) else { return }
    effects.append(.abandon(attempt, .left))
    if mode != .closed { linger(attempt, at: now) }
  }

  private mutating func linger(_ attempt: AttemptID, at now: LinkInstant) {
    retired.append(Retired(id: attempt, until: now + settings.lingering))
  }

  /// Whether a look-up or connection attempts are in progress.
  var isUnderWay: Bool {
    switch roundState {
    case .resolving, .connecting: true
    case .none, .waiting: false
    }
  }

  /// Handles the result of a round's look-up: a number of addresses, where 0 is a failure.
  package mutating func resolved(
    round: UInt32, addresses: Int, at now: LinkInstant, bits: () -> UInt64
  ) {
    guard case .resolving = roundState, round == self.round else { return }
    guard addresses > 0 else {
      failRound(at: now, bits: bits)
      return
    }
    addressCount = addresses
    nextAddress = 0
    isHeard = false
    roundState = .connecting
    startNext(at: now)
  }

  private mutating func startDue(at now: LinkInstant) {
    if nextAddress < addressCount { startNext(at: now) } else { startSecond(at: now) }
  }

  private mutating func startNext(at now: LinkInstant) {
    start(nextAddress, until: now + settings.connectTimeout)
    if nextAddress < addressCount {
      nextStart = now + settings.stagger
    } else if !isHeard, settings.patience < settings.connectTimeout {
      nextStart = now + settings.patience
    }
  }

  /// Connects a second time to the address that has been silent longest, in parallel to its first
  /// attempt and with the same time limit. The first complete handshake wins.
  private mutating func startSecond(at now: LinkInstant) {
    nextStart = .distantFuture
    guard let first = attempts.first(where: { $0.limit > now }) else { return }
    counts.secondAttempts += 1
    start(first.address, until: first.limit)
  }

  private mutating func start(_ address: Int, until limit: LinkInstant) {
    lastAttempt += 1
    attempts.append(Attempt(id: lastAttempt, address: address, limit: limit))
    effects.append(.connect(lastAttempt, address: address))
    nextAddress += 1
    nextStart = .distantFuture
  }

  /// Records that the system of an attempt's server has answered the TCP connect. The server may be
  /// slow, but no packet was lost, so a second attempt would only double its work.
  package mutating func reached(_ attempt: AttemptID) {
    guard attempts.contains(where: { $0.id == attempt }) else { return }
    isHeard = true
    if nextAddress == addressCount { nextStart = .distantFuture }
  }

  /// Handles the failure of an attempt. The next address is tried at once.
  package mutating func failed(_ attempt: AttemptID, at now: LinkInstant, bits: () -> UInt64) {
    guard let index = attempts.firstIndex(where: { $0.id == attempt }) else { return }
    let isOfOldPath = attempts.remove(at: index).isOfOldPath
    if nextAddress < addressCount {
      startNext(at: now)
    } else if isOfOldPath {
      // The network may be at fault, and no server: the round goes on over the new path.
      roundState = .none
      beginRoundOnPath(at: now, bits: bits)
    } else if attempts.isEmpty {
      failRound(at: now, bits: bits)
    }
  }

  /// Handles a link that was being prepared, and cannot be used: the attempt has failed.
  package mutating func notPrepared(
    _ attempt: AttemptID, at now: LinkInstant, bits: () -> UInt64
  ) {
    guard attempts.contains(where: { $0.id == attempt }) else { return }
    linger(attempt, at: now)
    failed(attempt, at: now, bits: bits)
  }

  /// Keeps an attempt whose handshake is complete without a time limit, and drops all others. The
  /// owner does not use the link yet.
  package mutating func hold(_ attempt: AttemptID) {
    hold(attempt, until: .distantFuture)
  }

  /// Lets the owner prepare an attempt whose handshake is complete, within the rest of its time. If
  /// it was held without a limit, it gets the full time.
  package mutating func prepare(_ attempt: AttemptID, at now: LinkInstant) {
    guard let held = attempts.first(where: { $0.id == attempt }) else {
      return dropLate(attempt, at: now)
    }
    hold(attempt, until: min(held.limit, now + settings.connectTimeout))
    attempts[0].isPreparing = true
    effects.append(.prepare(attempt))
  }

  private mutating func hold(_ attempt: AttemptID, until limit: LinkInstant) {
    guard let held = attempts.first(where: { $0.id == attempt }) else { return }
    for other in attempts where other.id != attempt { effects.append(.abandon(other.id, .left)) }
    attempts = [Attempt(id: attempt, address: held.address, limit: limit, isHeld: true)]
    nextStart = .distantFuture
    // The server has answered, so its other addresses are not tried in this round.
    nextAddress = addressCount
  }

  /// Handles a goaway on a link that is held. The attempt fails, and the link only finishes what it
  /// has begun, like a retired one.
  package mutating func heldLeft(_ attempt: AttemptID, at now: LinkInstant, bits: () -> UInt64) {
    guard attempts.contains(where: { $0.id == attempt }) else { return }
    linger(attempt, at: now)
    effects.append(.retire(attempt))
    failed(attempt, at: now, bits: bits)
  }

  /// Handles a goaway instead of a welcome: the attempt will fail, but the goaway's hints apply.
  /// `isRefusal` says that the server does not accept the client.
  package mutating func turnedAway(
    _ attempt: AttemptID, isRefusal: Bool = false, hint: Int64?, alternatives count: Int,
    at now: LinkInstant
  ) {
    guard attempts.contains(where: { $0.id == attempt }) else { return }
    if isRefusal { isRefused = true }
    avoid(target, for: hint, at: now)
    // While a link works, alternatives are not needed.
    if count > 0, current == nil { name(alternatives: count) }
  }

  /// Puts the servers that a draining one has named ahead of all others.
  mutating func name(alternatives count: Int) {
    guard settings.reconnect.followsAlternatives else { return }
    alternatives = (0..<count).map { .alternative(alternativesNamed + $0) }
    alternativesNamed += count
  }

  /// Forgets the named alternatives, unless all servers of the list ask clients to stay away.
  mutating func forgetAlternatives(at now: LinkInstant) {
    if list.mayAskAt <= now { alternatives = [] }
  }

  /// Handles a complete handshake: its attempt becomes the current link, unless another one was
  /// first.
  ///
  /// The link is proven after `life` nanoseconds, once bytes have arrived. The server accepts its
  /// credential for `validity` nanoseconds (nil for no end), and may allow its renewal on the link.
  package mutating func established(
    _ attempt: AttemptID, provenAfter life: Int64, validFor validity: Int64? = nil,
    renewsInPlace: Bool = false, at now: LinkInstant, bits: () -> UInt64
  ) {
    guard let index = attempts.firstIndex(where: { $0.id == attempt }) else {
      return dropLate(attempt, at: now)
    }
    let made = attempts.remove(at: index)
    abandonRound(at: now)
    let former = current
    let wasPreferredAt = preferredAt
    if former != nil { counts.migrations += 1 }
    abandonCurrent(at: now, followedBy: attempt)
    current = Current(
      id: attempt, target: target, since: former?.since ?? now, provenAt: now + life,
      renewsInPlace: renewsInPlace)
    outcomes = OutcomeWindow()
    if lastTarget != target, purpose != .preferred { counts.failovers += 1 }
    lastTarget = target
    if former?.target == target { preferredAt = wasPreferredAt }
    rearmPreferred(at: now, bits: bits)
    if let validity { armRenewal(after: validity, at: now, bits: bits) }
    if made.hasWorked { worked(attempt) }
    if made.isOfOldPath { beginRoundOnPath(at: now, bits: bits) }
  }

  private var hasAlternatives: Bool {
    !alternatives.isEmpty && outage.alternativesTried < Wire.alternativesLimit
  }

  func hasSpares(at now: LinkInstant) -> Bool {
    hasAlternatives || list.hasUntried(at: now)
  }

  /// The time, in nanoseconds, for which all servers that could be tried next ask clients to stay
  /// away; nil if one of them does not.
  func commonHint(at now: LinkInstant) -> Int64? {
    let hint = list.mayAskAt - now
    return hasAlternatives || hint <= 0 ? nil : hint
  }

  mutating func failRound(at now: LinkInstant, bits: () -> UInt64) {
    effects.append(.roundFailed(target))
    // A server that refuses the new credential of a renewal still works, as the current link shows.
    if !isRefused || current?.target != target { coolDown(target, at: now) }
    roundState = .none
    guard current == nil else {
      rearmPreferred(at: now, bits: bits)
      return
    }
    countFailure(at: now)
    pause(.refused, at: now, bits: bits)
  }

  /// Counts a failure in the outage; the window grows if no untried server is left.
  mutating func countFailure(at now: LinkInstant) {
    outage.failures += 1
    if !hasSpares(at: now) { outage.growth += 1 }
  }

  /// Waits for a delay drawn from the outage's window, or longer if all servers ask clients to stay
  /// away.
  mutating func pause(_ cause: LinkWait.Cause, at now: LinkInstant, bits: () -> UInt64) {
    let steps = outage.failures == 0 ? 0 : max(1, outage.growth)
    let window = settings.reconnect.window(first: outage.first, failures: steps)
    let drawn =
      window > outage.widest
      ? ReconnectPolicy.even(within: window, bits: bits())
      : ReconnectPolicy.period(of: window, bits: bits())
    if let hint = commonHint(at: now), hint > drawn {
      wait(hint, window: hint, .goaway, at: now)
    } else {
      outage.widest = max(outage.widest, window)
      wait(drawn, window: window, cause, at: now)
    }
  }

  mutating func wait(
    _ delay: Int64, window: Int64, _ cause: LinkWait.Cause, at now: LinkInstant
  ) {
    roundState = .waiting(now + delay)
    effects.append(
      .wait(LinkWait(failures: outage.failures, window: window, delay: delay, cause: cause)))
  }

  mutating func roundElapsed(at now: LinkInstant, bits: () -> UInt64) {
    switch roundState {
    case .waiting(let until) where until <= now:
      // The servers may have changed since the delay began.
      beginRoundWhenAllowed(at: now, bits: bits)
    case .resolving(let until) where until <= now:
      failRound(at: now, bits: bits)
    case .connecting:
      if nextStart <= now { startDue(at: now) }
      for attempt in attempts where attempt.limit <= now {
        abandon(attempt, .handshakeTimeout, at: now)
        failed(attempt.id, at: now, bits: bits)
      }
    case .none, .waiting, .resolving:
      break
    }
  }
}
