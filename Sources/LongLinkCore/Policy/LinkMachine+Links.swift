// SPDX-License-Identifier: Apache-2.0

/// The life of links: proven, lost, replaced.
extension LinkMachine {
  /// The lifetime in nanoseconds from which on a link resets the count of short drains.
  static let longLife: Int64 = 60_000_000_000
  /// The number of short drains in a row after which the client still reconnects without a delay.
  /// The expiry of a credential counts as a drain.
  static let shortDrainsFollowed = 8

  /// How long a link without a response must last to be proven, in nanoseconds, even if its server
  /// states a shorter heartbeat interval. Otherwise the server could make the client reconnect
  /// again and again without a growing delay.
  package static let leastProof: Int64 = 10_000_000_000

  /// Records that bytes from the server have arrived since the link was established. If the link
  /// has lasted long enough, this proves it: without such bytes, the server might have frozen after
  /// its welcome.
  package mutating func heard(_ attempt: AttemptID) {
    guard let link = current, link.id == attempt else { return }
    current?.isHeard = true
    if link.hasLasted { worked(attempt) }
  }

  /// Records that the link has answered a request, or lasted while bytes arrived. Only now is the
  /// server known to work, and the next outage starts with the shortest window.
  package mutating func worked(_ attempt: AttemptID) {
    if let index = attempts.firstIndex(where: { $0.id == attempt }) {
      // It counts once the link is used: until then, the attempt may fail.
      attempts[index].hasWorked = true
    }
    guard let link = current, link.id == attempt, !link.hasWorked else { return }
    current?.hasWorked = true
    outage = Outage()
    list.forgetTries()
    // Alternatives matter only while the servers of the list are unavailable.
    if case .listed = link.target { alternatives = [] }
    // Even an error is a response. If an error ratio is watched, it decides whether the server
    // works.
    if settings.reconnect.errorRatio == nil { succeeded(link.target) }
    effects.append(.proven(attempt))
  }

  private mutating func succeeded(_ target: Target) {
    if case .listed(let index) = target { list.succeeded(index) }
  }

  /// Counts the outcome of a request on the link: a response, or a missed deadline if deadlines
  /// count.
  package mutating func outcome(
    _ attempt: AttemptID, isError: Bool, at now: LinkInstant, bits: () -> UInt64
  ) {
    guard let link = current, link.id == attempt, let ratio = settings.reconnect.errorRatio else {
      return
    }
    outcomes.add(isError: isError, size: ratio.window)
    guard outcomes.count >= ratio.minimumRequests else { return }
    guard outcomes.errors > 0, Double(outcomes.errors) >= ratio.ratio * Double(outcomes.count)
    else {
      succeeded(link.target)
      return
    }
    outcomes = OutcomeWindow()
    let present: Int? = if case .listed(let index) = link.target { index } else { nil }
    // If no other server is available, the client stays with this one.
    guard !isUnderWay, let other = list.other(than: present, at: now, bits: bits) else { return }
    coolDown(link.target, at: now)
    beginRound(at: now, for: .errors, to: other, bits: bits)
  }

  /// Handles the server's goaway: the link gets no new requests, but finishes its current ones.
  ///
  /// The hint is the time for which the server asks clients to stay away, in nanoseconds, within
  /// the policy's limit; nil if it gave none.
  package mutating func peerLeft(
    _ attempt: AttemptID, _ reason: CloseReason, hint: Int64?, alternatives count: Int,
    at now: LinkInstant, bits: () -> UInt64
  ) {
    guard let link = current, link.id == attempt else { return }
    if count > 0 { name(alternatives: count) }
    abandonCurrent(at: now)
    counts.migrations += 1
    lose(link, reason, hint: hint, at: now, bits: bits)
  }

  /// Handles the end of the link.
  package mutating func ended(
    _ attempt: AttemptID, _ reason: CloseReason, at now: LinkInstant, bits: () -> UInt64
  ) {
    forget(attempt)
    guard let link = current, link.id == attempt else { return }
    current = nil
    (preferredAt, renewAt) = (.distantFuture, .distantFuture)
    lose(link, reason, hint: nil, at: now, bits: bits)
  }

  /// Forgets a link that has ended, if it was retired.
  mutating func forget(_ attempt: AttemptID) { retired.removeAll { $0.id == attempt } }

  private mutating func lose(
    _ link: Current, _ reason: CloseReason, hint: Int64?, at now: LinkInstant, bits: () -> UInt64
  ) {
    let isDraining = reason == .goneAway(.draining)
    let isExpired = reason == .goneAway(.unauthenticated)
    // Other clients use this client's identity. If each reconnected at once, it would end another's
    // link.
    let isCrowded = reason == .goneAway(.conflict)
    if now - link.since >= LinkMachine.longLife {
      shortDrains = 0
    } else if isDraining || isExpired || isCrowded {
      shortDrains += 1
    }
    let inARow = shortDrains - LinkMachine.shortDrainsFollowed
    avoid(link.target, for: hint, at: now)
    if link.hasWorked {
      let policy = settings.reconnect
      let first = reason == .heartbeatLost ? policy.afterLostHeartbeat : policy.afterClose
      outage = Outage(first: first.clampedNanoseconds)
      list.forgetTries()
      // In this outage, the round that is under way counts as a try of its server.
      if isUnderWay, case .listed(let index) = target { list.tried(index) }
      if !isDraining { forgetAlternatives(at: now) }
      // A draining server should not be the first choice when its cool-down is over.
      if isDraining, case .listed(let index) = link.target { list.tried(index) }
      if isDraining || reason == .heartbeatLost { coolDown(link.target, at: now) }
      // Reconnects without a delay must not go on and on if servers drain repeatedly and name each
      // other, or accept credentials only briefly.
      if isDraining || isExpired, inARow > 0 { (outage.failures, outage.growth) = (inARow, inARow) }
      if isCrowded { (outage.failures, outage.growth) = (max(1, shortDrains), max(1, shortDrains)) }
    } else {
      // The link was not proven: the delays continue to grow, and another server may work better.
      if !isExpired { coolDown(link.target, at: now) }
      countFailure(at: now)
    }
    if isUnderWay {
      // The replacement is already being connected. It is of no use if it is to the same draining
      // server, or if renewals keep coming too late.
      guard isDraining && target == link.target || isExpired && purpose == .renewal && inARow > 0
      else { return }
      abandonRound(at: now)
    }
    if link.hasWorked, isDraining, inARow <= 0, apply(hint, at: now, bits: bits) { return }
    // The credential had expired: with a new one, the server will accept the client.
    if link.hasWorked, isExpired, inARow <= 0 {
      beginRoundWhenAllowed(at: now, bits: bits)
      return
    }
    let cause: LinkWait.Cause =
      !link.hasWorked ? .unproven : reason == .heartbeatLost ? .heartbeatLost : .closed
    pause(cause, at: now, bits: bits)
  }

  /// Reconnects as a draining server asks; returns false if the usual delay applies instead.
  private mutating func apply(_ hint: Int64?, at now: LinkInstant, bits: () -> UInt64) -> Bool {
    if let hint = commonHint(at: now) {
      wait(hint, window: hint, .goaway, at: now)
      return true
    }
    // Many clients may have got this hint at once, and must not all rush to the other servers.
    guard hint == nil, hasSpares(at: now) else { return false }
    beginRound(at: now, bits: bits)
    return true
  }

  /// Avoids a server for the time of its hint, in nanoseconds; nil for no hint.
  mutating func avoid(_ target: Target, for hint: Int64?, at now: LinkInstant) {
    if let hint, case .listed(let index) = target { list.avoid(index, until: now + hint) }
  }

  mutating func coolDown(_ target: Target, at now: LinkInstant) {
    guard case .listed(let index) = target, list.entries.count > 1 else { return }
    list.failed(index, at: now)
    counts.coolDowns += 1
  }
}

// MARK: - Moving

extension LinkMachine {
  /// Retires the current link, which finishes its requests. `next`, unless nil, gets new requests.
  mutating func abandonCurrent(at now: LinkInstant, followedBy next: AttemptID? = nil) {
    if let next { effects.append(.use(next)) }
    guard let link = current else { return }
    current = nil
    (preferredAt, renewAt) = (.distantFuture, .distantFuture)
    retired.append(Retired(id: link.id, until: now + settings.lingering))
    effects.append(.retire(link.id))
  }

  mutating func expireRetired(at now: LinkInstant) {
    for index in retired.indices where retired[index].until <= now {
      retired[index].until = .distantFuture
      effects.append(.expire(retired[index].id))
    }
  }

  /// Schedules the next attempt to fail back, if there is a server of better priority.
  mutating func armPreferred(at now: LinkInstant, bits: () -> UInt64) {
    guard let current else { return }
    let present: Int? = if case .listed(let index) = current.target { index } else { nil }
    guard list.hasBetter(than: present) else { return }
    let interval = settings.reconnect.preferredRetry.clampedNanoseconds
    preferredAt = now + ReconnectPolicy.period(of: interval, bits: bits())
  }

  /// Schedules an attempt to fail back unless one is scheduled already, so that renewals do not
  /// postpone it for ever.
  mutating func rearmPreferred(at now: LinkInstant, bits: () -> UInt64) {
    if preferredAt == .distantFuture { armPreferred(at: now, bits: bits) }
  }

  mutating func tryPreferred(at now: LinkInstant, bits: () -> UInt64) {
    guard let current else { return }
    guard !isUnderWay else {
      armPreferred(at: now, bits: bits)
      return
    }
    let present: Int? = if case .listed(let index) = current.target { index } else { nil }
    if let better = list.better(than: present, at: now, bits: bits) {
      beginRound(at: now, for: .preferred, to: better, bits: bits)
    } else {
      armPreferred(at: now, bits: bits)
    }
  }
}
