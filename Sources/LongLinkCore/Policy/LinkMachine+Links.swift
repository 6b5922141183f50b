// SPDX-License-Identifier: Apache-2.0

/// The life of links: proven, lost, left for another.
extension LinkMachine {
  /// A link that has lived for so long, in nanoseconds, ends a row of links that drain soon.
  static let longLife: Int64 = 60_000_000_000
  /// How many of a row are followed by the next link without a pause.
  static let shortDrainsFollowed = 8

  /// The link has answered a request, or lived through a heartbeat interval: only now is the server
  /// known to be well, and the next failure starts from the shortest pause.
  package mutating func worked(_ attempt: AttemptID) {
    guard let link = current, link.id == attempt, !link.hasWorked else { return }
    current?.hasWorked = true
    outage = Outage()
    list.forgetTries()
    // Servers are named for the time in which those of the list cannot be had.
    if case .listed = link.target { alternatives = [] }
    // An answer may well be an error: where those are watched, they decide.
    if settings.servers.errorRatio == nil { succeeded(link.target) }
    effects.append(.proven(attempt))
  }

  private mutating func succeeded(_ target: Target) {
    if case .listed(let index) = target { list.succeeded(index) }
  }

  /// A request on the link was answered, or, where those count, has passed its deadline.
  package mutating func outcome(
    _ attempt: AttemptID, isError: Bool, at now: LinkInstant, bits: () -> UInt64
  ) {
    guard let link = current, link.id == attempt, let ratio = settings.servers.errorRatio else {
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
    // A bad server is better than none.
    guard !isUnderWay, let other = list.other(than: present, at: now, bits: bits) else { return }
    coolDown(link.target, at: now)
    beginRound(at: now, for: .errors, to: other, bits: bits)
  }

  /// The server has said goaway: the link takes nothing new, but finishes what it carries.
  ///
  /// A hint is how long the server asks to be left alone, in nanoseconds, within what the policy
  /// allows; nil where it did not say.
  package mutating func left(
    _ attempt: AttemptID, _ reason: CloseReason, hint: Int64?, alternatives count: Int,
    at now: LinkInstant, bits: () -> UInt64
  ) {
    guard let link = current, link.id == attempt else { return }
    if count > 0 { name(alternatives: count) }
    leaveCurrent(at: now)
    counts.migrations += 1
    lose(link, reason, hint: hint, at: now, bits: bits)
  }

  /// The link has ended.
  package mutating func ended(
    _ attempt: AttemptID, _ reason: CloseReason, at now: LinkInstant, bits: () -> UInt64
  ) {
    retired.removeAll { $0.id == attempt }
    guard let link = current, link.id == attempt else { return }
    current = nil
    preferredAt = .distantFuture
    lose(link, reason, hint: nil, at: now, bits: bits)
  }

  private mutating func lose(
    _ link: Current, _ reason: CloseReason, hint: Int64?, at now: LinkInstant, bits: () -> UInt64
  ) {
    let isDraining = reason == .goneAway(.draining)
    if now - link.since >= LinkMachine.longLife {
      shortDrains = 0
    } else if isDraining {
      shortDrains += 1
    }
    leaveAlone(link.target, for: hint, at: now)
    if link.hasWorked {
      let policy = settings.reconnect
      let first = reason == .heartbeatLost ? policy.afterLostHeartbeat : policy.afterClose
      outage = Outage(first: first.clampedNanoseconds)
      list.forgetTries()
      if !isDraining { forgetAlternatives(at: now) }
      // A server that goes away is not asked first when it may be asked again.
      if isDraining, case .listed(let index) = link.target { list.tried(index) }
      if isDraining || reason == .heartbeatLost { coolDown(link.target, at: now) }
    } else {
      // It greeted and did nothing else: the pauses go on growing, and another may do better.
      coolDown(link.target, at: now)
      countFailure(at: now)
    }
    if isUnderWay {
      // What was to replace the link is made already, unless it is the same server that goes.
      guard isDraining, target == link.target else { return }
      abandonRound()
    }
    if link.hasWorked, isDraining, follow(hint, at: now, bits: bits) { return }
    let cause: LinkWait.Cause =
      !link.hasWorked ? .unproven : reason == .heartbeatLost ? .heartbeatLost : .closed
    pause(cause, at: now, bits: bits)
  }

  /// Goes on as a draining server asks; false when the usual pause comes first.
  private mutating func follow(_ hint: Int64?, at now: LinkInstant, bits: () -> UInt64) -> Bool {
    let inARow = shortDrains - LinkMachine.shortDrainsFollowed
    guard inARow <= 0 else {
      // Servers which drain again and again, and name each other, are no reason to hurry.
      (outage.failures, outage.growth) = (inARow, inARow)
      return false
    }
    if let hint = commonHint(at: now) {
      wait(hint, window: hint, .goaway, at: now)
      return true
    }
    // Many clients may have been told to stay away at the same time: they do not all run to the
    // other servers at once.
    guard hint == nil, hasSpares(at: now) else { return false }
    beginRound(at: now, bits: bits)
    return true
  }

  /// Keeps away from a server that asks for it, in nanoseconds, as long as the policy allows.
  mutating func leaveAlone(_ target: Target, for hint: Int64?, at now: LinkInstant) {
    if let hint, case .listed(let index) = target { list.leaveAlone(index, until: now + hint) }
  }

  mutating func coolDown(_ target: Target, at now: LinkInstant) {
    guard case .listed(let index) = target, list.entries.count > 1 else { return }
    list.failed(index, at: now)
    counts.coolDowns += 1
  }
}

// MARK: - Moving

extension LinkMachine {
  /// Lets the current link finish what it carries; another one takes what is new, or none does.
  mutating func leaveCurrent(at now: LinkInstant, followedBy next: AttemptID? = nil) {
    if let next { effects.append(.use(next)) }
    guard let link = current else { return }
    current = nil
    preferredAt = .distantFuture
    retired.append(Retired(id: link.id, until: now + settings.lingering))
    effects.append(.retire(link.id))
  }

  mutating func expireRetired(at now: LinkInstant) {
    for index in retired.indices where retired[index].until <= now {
      retired[index].until = .distantFuture
      effects.append(.expire(retired[index].id))
    }
  }

  /// Plans the next try of a better server, where there is one.
  mutating func armPreferred(at now: LinkInstant, bits: () -> UInt64) {
    guard let current else { return }
    let present: Int? = if case .listed(let index) = current.target { index } else { nil }
    guard list.hasBetter(than: present) else { return }
    let interval = settings.servers.preferredRetry.clampedNanoseconds
    preferredAt = now + ReconnectPolicy.period(of: interval, bits: bits())
  }

  mutating func tryPreferred(at now: LinkInstant, bits: () -> UInt64) {
    guard let current, !isUnderWay else { return }
    let present: Int? = if case .listed(let index) = current.target { index } else { nil }
    if let better = list.better(than: present, at: now, bits: bits) {
      beginRound(at: now, for: .preferred, to: better, bits: bits)
    } else {
      armPreferred(at: now, bits: bits)
    }
  }
}
