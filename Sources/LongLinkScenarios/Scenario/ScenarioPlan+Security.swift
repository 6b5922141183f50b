// SPDX-License-Identifier: Apache-2.0

internal import LongLinkTesting

extension ScenarioPlan {
  /// When a server's certificates are replaced, and whether its connections are asked to move.
  struct Replacement: Hashable, Sendable {
    var at: Duration
    var server: Int
    var moves: Bool
  }

  /// The plan for one credential of a client.
  struct Credential: Hashable, Sendable {
    /// What the client's `credential` function does.
    enum Source: Hashable, Sendable {
      case fresh
      /// The client's function returns the credential before this one.
      case stale
      case fails
    }

    /// What the server's `authenticate` function decides.
    enum Verdict: Hashable, Sendable {
      case accepted
      case anonymous
      case unauthenticated
      case forbidden
      /// The server cannot judge the credential at the moment.
      case unknown
    }

    var source = Source.fresh
    /// The time that the client's `credential` function takes.
    var delay = Duration.zero
    var verdict = Verdict.accepted
    /// The time that the server's `authenticate` function takes.
    var judging = Duration.zero
    var validity: Duration?

    /// The plan for each credential after the faults have stopped.
    static let healed = Credential(validity: .seconds(45))
  }

  /// Draws when certificates are replaced, from a generator of its own.
  mutating func drawReplacements(_ dice: inout SeededGenerator) {
    for server in servers.indices {
      for _ in 0..<dice.int(0...3) {
        replacements.append(
          Replacement(
            at: .milliseconds(dice.int(5_000...580_000)), server: server,
            moves: dice.chance(1, in: 2)))
      }
    }
    replacements.sort { $0.at < $1.at }
  }

  /// Draws the plan for a client's credential. `number` counts the client's credentials from 1.
  func credential(_ number: Int, of client: Int) -> Credential {
    var dice = credentialOrigin.forked(for: UInt64(client) << 32 | UInt64(number))
    var credential = Credential()
    switch dice.int(0...99) {
    case ..<4: credential.source = .fails
    case ..<10: credential.source = .stale
    default: break
    }
    if dice.chance(1, in: 10) { credential.delay = .milliseconds(dice.int(1...2_500)) }
    switch dice.int(0...99) {
    case ..<5: credential.verdict = .unauthenticated
    case ..<7: credential.verdict = .forbidden
    case ..<13: credential.verdict = .unknown
    case ..<20: credential.verdict = .anonymous
    default: break
    }
    switch dice.int(0...99) {
    case ..<15: credential.judging = .milliseconds(dice.int(1...800))
    // This is longer than a server lets the function take.
    case ..<17: credential.judging = .seconds(7)
    default: break
    }
    if dice.chance(3, in: 4) { credential.validity = .milliseconds(dice.int(2_000...60_000)) }
    return credential
  }
}
