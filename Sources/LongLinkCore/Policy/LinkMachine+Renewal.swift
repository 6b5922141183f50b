// SPDX-License-Identifier: Apache-2.0

/// Credentials: their renewal on the current link before they expire, or by a move to another link;
/// and rounds for which the application has no credential.
extension LinkMachine {
  /// The least time between two attempts to move to a link with a new credential, in nanoseconds.
  static let leastRenewalRetry: Int64 = 100_000_000

  /// Schedules the renewal of the current link's credential: at 75 to 90 % of its validity, drawn
  /// at random, so that clients that connected together do not renew together; but not within a
  /// second. If a server accepts credentials for less than that, they expire, and back-off applies.
  mutating func armRenewal(after validity: Int64, at now: LinkInstant, bits: () -> UInt64) {
    current?.expiresAt = now + validity
    let part = 750 + Int64(bits() % 151)
    let (whole, rest) = validity.quotientAndRemainder(dividingBy: 1_000)
    let drawn = whole * part + rest * part / 1_000
    renewAt = now + min(validity, max(Wire.renewalRest, drawn))
  }

  /// Renews the credential on the link, or begins a round for a link with a new one. If the round
  /// fails, another one begins after a quarter of the remaining validity, but at least a tenth of a
  /// second. Once the credential has expired, there is no further round.
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

  /// Handles the renewal of a link's credential, which its server accepts for `validity`
  /// nanoseconds; nil for no end.
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

  /// Handles a renewal that has failed. With `again`, another one follows after a quarter of the
  /// remaining validity, but at least a second.
  package mutating func notRenewed(_ attempt: AttemptID, again: Bool, at now: LinkInstant) {
    guard let current, current.id == attempt, again else { return }
    renewAt = now + max(Wire.renewalRest, (current.expiresAt - now) / 4)
  }

  /// Schedules another renewal of the current link's credential, because the application has asked
  /// to connect.
  mutating func renewAgain(at now: LinkInstant) {
    guard let current, current.expiresAt != .distantFuture, renewAt == .distantFuture else {
      return
    }
    renewAt = now + Wire.renewalRest
  }

  /// Handles a credential that cannot be renewed on its link: the new one needs another link.
  package mutating func cannotRenew(
    _ attempt: AttemptID, at now: LinkInstant, bits: () -> UInt64
  ) {
    guard isCurrent(attempt) else { return }
    current?.renewsInPlace = false
    renew(at: now, bits: bits)
  }

  /// The current link's server, if the replacement should go to the same one; nil otherwise.
  func replacement(for purpose: Purpose, at now: LinkInstant) -> Target? {
    guard let target = current?.target else { return nil }
    switch (purpose, target) {
    case (.path, .listed(let index)), (.renewal, .listed(let index)):
      return list.isReady(index, at: now) ? target : nil
    case (.renewal, .alternative):
      // All servers of the list ask clients to stay away for now, and have named this alternative.
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

  /// Ends a round for which the application has no credential. No server is at fault, so none cools
  /// down, and this one does not count as tried.
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
    // The missing credential is not the server's fault, so trying others would not help.
    outage.failures += 1
    outage.growth += 1
    pause(.refused, at: now, bits: bits)
  }
}
