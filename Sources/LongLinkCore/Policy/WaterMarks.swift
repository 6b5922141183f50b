// SPDX-License-Identifier: Apache-2.0

/// How many bytes may wait to be written to one connection before senders have to wait.
///
/// What leaves in one piece and what leaves in fragments (bodies above 64 KiB, where both sides
/// agreed to fragments) are counted apart, so that a large body keeps nothing small from passing
/// it. Requests that have to wait stay in the queue of those that wait for a connection, and their
/// deadlines run; pushes wait within theirs. One message may lead over a mark. Answers and control
/// frames are counted and do not wait.
///
/// So at most `high` and `large` bytes wait on a connection, and one body beyond each.
public struct WaterMarks: Hashable, Sendable {
  /// From so many bytes on senders wait, bytes of fragments aside; at least 1. Default 1 MiB.
  public var high: Int
  /// They go on when no more than so many are left; at least 0 and below `high`. Default 512 KiB.
  public var low: Int
  /// From so many bytes of bodies in fragments on further such bodies wait, until half of that is
  /// left; at least 1. Never above half of `maxUnreadOutput`. Default 32 MiB.
  public var large: Int

  /// Makes marks.
  public init(high: Int = 1_048_576, low: Int = 524_288, large: Int = 33_554_432) {
    self.high = high
    self.low = low
    self.large = large
  }
}
