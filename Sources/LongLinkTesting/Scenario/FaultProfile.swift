// SPDX-License-Identifier: Apache-2.0

/// Which faults a scenario draws, and how many.
///
/// ```swift
/// var profile = FaultProfile(name: "mine", rates: [.halfOpen: 3, .flippedBit: 1])
/// profile.count = 20...40
/// let report = try await Scenario(seed: 7, profile: profile).run()
/// ```
public struct FaultProfile: Hashable, Sendable {
  /// The name by which a run is told from others and replayed.
  public var name: String
  /// How often each kind is drawn, beside the others. Kinds that are missing never are.
  public var rates: [FaultKind: Int]
  /// How many faults a scenario has: 5 to 12 by default.
  public var count: ClosedRange<Int>

  /// Makes a profile. Negative rates, and a lowest count below 0, are a programming error.
  public init(name: String, rates: [FaultKind: Int], count: ClosedRange<Int> = 5...12) {
    precondition(rates.values.allSatisfy { $0 >= 0 }, "a rate is not negative")
    precondition(count.lowerBound >= 0, "a scenario has no fewer faults than none")
    self.name = name
    self.rates = rates
    self.count = count
  }

  /// Every kind of fault, each as often as the others: 5 to 12 of them.
  public static let `default` = FaultProfile(
    name: "default", rates: Dictionary(uniqueKeysWithValues: FaultKind.allCases.map { ($0, 1) }))

  /// No faults: what goes wrong here goes wrong by itself.
  public static let calm = FaultProfile(name: "calm", rates: [:], count: 0...0)

  /// A network that loses, delays, damages and breaks: 15 to 30 faults, processes stay well.
  public static let hostileNetwork = FaultProfile(
    name: "hostile-network",
    rates: [
      .weakRadio: 2, .smallPieces: 1, .lostLink: 2, .lostLinks: 1, .reset: 2, .halfClose: 2,
      .halfOpen: 3, .oneWay: 3, .partition: 2, .flippedBit: 3, .refusedConnects: 1,
      .ignoredConnects: 1, .slowNames: 1, .failingNames: 1, .cloggedLink: 1, .changedPath: 1,
    ],
    count: 15...30)

  /// Servers and processes that stop, freeze, crash and come back: 10 to 20 faults.
  public static let restarts = FaultProfile(
    name: "restarts",
    rates: [
      .restart: 3, .crash: 3, .machineCrash: 2, .pause: 2, .flapping: 2, .closedConnection: 2,
    ],
    count: 10...20)

  /// Peers that take long to read, to answer and to wake up: 10 to 20 faults.
  public static let slowPeers = FaultProfile(
    name: "slow-peers",
    rates: [.cloggedLink: 3, .stalledReader: 3, .weakRadio: 3, .pause: 2, .clockJump: 1],
    count: 10...20)

  /// The profiles that have a name of their own.
  public static let all = [FaultProfile.default, .calm, .hostileNetwork, .restarts, .slowPeers]

  /// The profile of a name; nil where there is none.
  public init?(named name: String) {
    guard let profile = Self.all.first(where: { $0.name == name }) else { return nil }
    self = profile
  }

  /// Draws a kind by the rates; nil where all are 0.
  func draw(using generator: inout SeededGenerator) -> FaultKind? {
    // In the order of the cases: a dictionary's own differs between processes.
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
