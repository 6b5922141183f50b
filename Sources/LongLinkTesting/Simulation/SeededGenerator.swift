// SPDX-License-Identifier: Apache-2.0

/// A pseudorandom generator: the same seed gives the same numbers on every machine.
///
/// The algorithm is xoshiro256** 1.0 by Blackman and Vigna (<https://prng.di.unimi.it>), seeded by
/// SplitMix64 as its authors advise. It is fast and of good quality, but not for secrets.
public struct SeededGenerator: RandomNumberGenerator, Hashable, Sendable {
  private var state: (UInt64, UInt64, UInt64, UInt64)

  /// Makes a generator; every seed is as good as any other.
  public init(seed: UInt64) {
    var mixer = seed
    state = (
      Self.splitMix(&mixer), Self.splitMix(&mixer), Self.splitMix(&mixer), Self.splitMix(&mixer)
    )
  }

  /// Returns the next 64 random bits.
  public mutating func next() -> UInt64 {
    let result = Self.rotate(state.1 &* 5, by: 7) &* 9
    let shifted = state.1 << 17
    state.2 ^= state.0
    state.3 ^= state.1
    state.1 ^= state.2
    state.0 ^= state.3
    state.2 ^= shifted
    state.3 = Self.rotate(state.3, by: 45)
    return result
  }

  /// Returns a separate generator for one purpose, so that draws for different purposes do not
  /// affect each other.
  package func forked(for purpose: UInt64) -> SeededGenerator {
    var mixer = state.0 ^ purpose
    return SeededGenerator(seed: Self.splitMix(&mixer))
  }

  private static func splitMix(_ state: inout UInt64) -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  private static func rotate(_ value: UInt64, by bits: UInt64) -> UInt64 {
    value << bits | value >> (64 - bits)
  }

  /// Returns whether both generators will give the same numbers.
  public static func == (lhs: SeededGenerator, rhs: SeededGenerator) -> Bool {
    lhs.state == rhs.state
  }

  /// Feeds the state into a hasher.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(state.0)
    hasher.combine(state.1)
    hasher.combine(state.2)
    hasher.combine(state.3)
  }
}
