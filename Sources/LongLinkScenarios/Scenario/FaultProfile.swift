// SPDX-License-Identifier: Apache-2.0

internal import LongLinkTesting

/// The kinds of faults that a scenario draws, and their number.
///
/// ```swift
/// var profile = FaultProfile(name: "mine", rates: [.halfOpen: 3, .flippedBit: 1])
/// profile.count = 20...40
/// let report = try await Scenario(seed: 7, profile: profile).run()
/// ```
package struct FaultProfile: Hashable, Sendable {
  /// The name, by which a run is identified and replayed.
  package var name: String
  /// The relative frequency of each kind. Missing kinds are never drawn.
  package var rates: [FaultKind: Int]
  /// The number of faults in a scenario; 5 to 12 by default.
  package var count: ClosedRange<Int>
  /// Whether clients have short links beside the long one; one in four has short links alone.
  package var hasShortLinks = false
  /// Whether applications may have no credential for a while, or an old one, and servers may refuse
  /// it or be unable to judge it. Otherwise clients always have one that is accepted.
  package var refusesCredentials = false

  /// Whether clients also send requests that run once. Servers keep their records in memory, or in
  /// stores that outlive them.
  package var hasOnce = false

  /// Makes a profile. Negative rates or counts are a programming error.
  package init(
    name: String, rates: [FaultKind: Int], count: ClosedRange<Int> = 5...12,
    hasShortLinks: Bool = false, refusesCredentials: Bool = false, hasOnce: Bool = false
  ) {
    precondition(rates.values.allSatisfy { $0 >= 0 }, "a rate must not be negative")
    precondition(count.lowerBound >= 0, "a count of faults must not be negative")
    self.name = name
    self.rates = rates
    self.count = count
    self.hasShortLinks = hasShortLinks
    self.refusesCredentials = refusesCredentials
    self.hasOnce = hasOnce
  }

  /// 5 to 12 faults of all kinds, equally likely.
  package static let `default` = FaultProfile(
    name: "default",
    rates: Dictionary(
      uniqueKeysWithValues: FaultKind.everywhere.map { ($0, 1) }))

  /// No faults.
  package static let calm = FaultProfile(name: "calm", rates: [:], count: 0...0)

  /// 15 to 30 faults of the network only: losses, delays, damage and broken links.
  package static let hostileNetwork = FaultProfile(
    name: "hostile-network",
    rates: [
      .weakRadio: 2, .smallPieces: 1, .lostLink: 2, .lostLinks: 1, .reset: 2, .halfClose: 2,
      .halfOpen: 3, .oneWay: 3, .partition: 2, .flippedBit: 3, .refusedConnects: 1,
      .ignoredConnects: 1, .slowNames: 1, .failingNames: 1, .cloggedLink: 1, .changedPath: 1,
    ],
    count: 15...30)

  /// 10 to 20 faults of servers and processes that stop, freeze, crash and restart.
  package static let restarts = FaultProfile(
    name: "restarts",
    rates: [
      .restart: 3, .crash: 3, .machineCrash: 2, .pause: 2, .flapping: 2, .closedConnection: 2,
    ],
    count: 10...20)

  /// 10 to 20 faults of peers that are slow to read, respond or wake up.
  package static let slowPeers = FaultProfile(
    name: "slow-peers",
    rates: [.cloggedLink: 3, .stalledReader: 3, .weakRadio: 3, .pause: 2, .clockJump: 1],
    count: 10...20)

  /// 10 to 20 faults, most of them networks that block the long ports, for clients that have short
  /// links too.
  package static let twoWays = FaultProfile(
    name: "two-ways",
    rates: [
      .blockedPorts: 8, .lostLink: 2, .lostLinks: 1, .reset: 2, .halfClose: 2, .halfOpen: 1,
      .oneWay: 1, .partition: 1, .flippedBit: 1, .weakRadio: 1, .smallPieces: 1, .cloggedLink: 1,
      .stalledReader: 1, .crash: 1, .machineCrash: 1, .restart: 2, .changedPath: 2, .suspension: 1,
      .pause: 1,
    ],
    count: 10...20, hasShortLinks: true)

  /// 5 to 12 faults of all kinds, for clients whose credentials servers refuse, or cannot judge for
  /// a while; and principals whose connections a server ends.
  package static let credentials = FaultProfile(
    name: "credentials",
    rates: Dictionary(
      uniqueKeysWithValues: FaultKind.everywhere.map { ($0, 1) } + [(.endedPrincipal, 5)]),
    refusesCredentials: true)

  /// 14 to 26 faults for requests that run once: of links, which are silent or read late; of
  /// processes, which crash in the middle of a request; of stores and their clocks; and users who
  /// change.
  package static let once = FaultProfile(
    name: "once",
    rates: [
      .crashedRun: 6, .secondClient: 3, .login: 2, .failingStore: 3, .lostStore: 2, .storeClock: 2,
      .halfOpen: 3, .oneWay: 2, .pause: 3, .stalledReader: 2, .lostLink: 2, .lostLinks: 1,
      .reset: 2, .partition: 1, .changedPath: 2, .suspension: 1, .restart: 3, .crash: 1,
      .machineCrash: 1, .clockJump: 1, .blockedPorts: 1, .weakRadio: 1,
    ],
    count: 14...26, hasShortLinks: true, hasOnce: true)

  /// The predefined profiles.
  package static let all = [
    FaultProfile.default, .calm, .hostileNetwork, .restarts, .slowPeers, .twoWays, .credentials,
    .once,
  ]

  /// Finds a predefined profile; nil if none has this name.
  package init?(named name: String) {
    guard let profile = Self.all.first(where: { $0.name == name }) else { return nil }
    self = profile
  }

  /// Draws a kind by the rates; nil if all are 0.
  func draw(using generator: inout SeededGenerator) -> FaultKind? {
    // In the order of the cases: a dictionary's order differs between processes.
    let kinds = FaultKind.allCases.map { ($0, rates[$0] ?? 0) }
    let sum = kinds.reduce(0) { $0 + $1.1 }
    guard sum > 0 else { return nil }
    var rest = Int.random(in: 0..<sum, using: &generator)
    for (kind, rate) in kinds {
      if rest < rate { return kind }
      rest -= rate
    }
    return nil
  }
}

extension FaultKind {
  /// The kinds that need no feature of a profile or a run.
  fileprivate static let everywhere = allCases.filter {
    ![
      .blockedPorts, .endedPrincipal, .replacedCertificates, .crashedRun, .secondClient, .login,
      .failingStore, .lostStore, .storeClock,
    ].contains($0)
  }
}
