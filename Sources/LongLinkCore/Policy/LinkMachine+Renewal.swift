// SPDX-License-Identifier: Apache-2.0

/// Credentials: the next one for the current link before its own expires, or the move to a link
/// with it, and rounds for which there is none.
extension LinkMachine {
  /// The shortest time between two attempts at a move to the next credential, in nanoseconds.
  static let leastRenewalRetry: Int64 = 100_000_000

  /// Schedules the renewal of the current link's credential: at 75 to 90 % of its validity, drawn
  /// at random, so that clients that came together do not renew together; but not within a second.
  /// A server that accepts credentials for less does not get a new one each time: they expire, and
  /// back-off applies.
  mutating func armRenewal(after validity: Int64, at now: LinkInstant, bits: () -> UInt64) {
    current?.expiresAt = now + validity
    let part = 750 + Int64(bits() % 151)
    let (whole, rest) = validity.quotientAndRemainder(dividingBy: 1_000)
    let drawn = whole * part + rest * part / 1_000
    renewAt = now + min(validity, max(Wire.renewalRest, drawn))
  }

  /// Has the next credential shown on the link, or begins a round for a link with it. If the round
  /// fails, another one begins in a quarter of the time that is left, down to a tenth of a second.
  /// There is none once the time is over.
  mutating func renew(at now: LinkInstant, bits: () -> UInt64) {
    guard let current, current.expiresAt > now else {
      renewAt = .distantFuture
      return
    }
    guard !current.renewsInPlace else {
      renewAt = .distantFuture
      effects.append(.renew(current.id))
      return
    }
    renewAt = now + max(LinkMachine.leastRenewalRetry, (current.expiresAt - now) / 4)
    guard !isUnderWay, replacement(for: .renewal, at: now) != nil || list.mayAskAt <= now else {
      return
    }
    beginRound(at: now, for: .renewal, bits: bits)
  }

  /// Handles the next credential of a link, which its server accepts for `validity` nanoseconds;
  /// nil without an end.
  package mutating func renewed(
    _ attempt: AttemptID, validFor validity: Int64?, at now: LinkInstant, bits: () -> UInt64
  ) {
    guard isCurrent(attempt) else { return }
    if let validity {
      armRenewal(after: validity, at: now, bits: bits)
    } else {
      current?.expiresAt = .distantFuture
    }
  }

  /// Handles a renewal without a result. Unless the client is given up, another one follows in a
  /// quarter of the time that is left, but not within a second.
  package mutating func notRenewed(_ attempt: AttemptID, again: Bool, at now: LinkInstant) {
    guard let current, current.id == attempt, again else { return }
    renewAt = now + max(Wire.renewalRest, (current.expiresAt - now) / 4)
  }

  /// Schedules the renewal of the current link's credential once more, after the application has
  /// asked for it.
  mutating func renewAgain(at now: LinkInstant) {
    guard let current, current.expiresAt != .distantFuture, renewAt == .distantFuture else {
      return
    }
    renewAt = now + Wire.renewalRest
  }

  /// Handles a credential that can only be shown on another link.
  package mutating func cannotRenew(
    _ attempt: AttemptID, at now: LinkInstant, bits: () -> UInt64
  ) {
    guard isCurrent(attempt) else { return }
    current?.renewsInPlace = false
    renew(at: now, bits: bits)
  }

  /// The server of the current link, if its replacement should be made there too.
  func replacement(for purpose: Purpose, at now: LinkInstant) -> Target? {
    guard let target = current?.target else { return nil }
    switch (purpose, target) {
    case (.path, .listed(let index)), (.renewal, .listed(let index)):
      return list.isReady(index, at: now) ? target : nil
    case (.renewal, .alternative):
      // Which all servers of the list leave their clients to, for now.
      return list.mayAskAt > now ? target : nil
    case (.path, .alternative), (.connect, _), (.preferred, _), (.errors, _):
      return nil
    }
  }

  /// Whether the look-up of this round is in progress.
  package func isResolving(_ round: UInt32) -> Bool {
    guard case .resolving = roundState else { return false }
    return round == self.round
  }

  /// Ends a round for which there is no credential. No server is at fault: none cools down, and
  /// each is still to be tried.
  package mutating func noCredential(
    round: UInt32, at now: LinkInstant, bits: () -> UInt64
  ) {
    guard isResolving(round) else { return }
    switch target {
    case .listed(let index):
      if isFirstTry { list.untried(index) }
    case .alternative where purpose == .renewal: break
    case .alternative:
      alternatives.insert(target, at: 0)
      outage.alternativesTried -= 1
    }
    effects.append(.roundFailed(target))
    roundState = .none
    guard current == nil else {
      rearmPreferred(at: now, bits: bits)
      return
    }
    // Other servers would not help.
    outage.failures += 1
    outage.growth += 1
    pause(.refused, at: now, bits: bits)
  }
}
