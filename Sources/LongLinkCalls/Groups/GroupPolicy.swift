// SPDX-License-Identifier: Apache-2.0

/// The concurrency of a group, and what happens when one of its calls fails.
public struct GroupPolicy: Hashable, Sendable {
  /// The most calls in progress, at least 1. Default 4.
  public var maxConcurrent: Int
  /// How a failed call affects the others of the group. Default: they continue.
  public var failures: Failures

  /// How failed calls affect the others of their group.
  public enum Failures: Hashable, Sendable {
    /// The other calls continue: every call is made.
    case goOn
    /// When more than this number of calls have failed, cancels the running calls and begins no
    /// more.
    case stopAfter(Int)

    /// At the first failure, cancels the running calls and begins no more.
    public static let stop = Failures.stopAfter(0)
  }

  /// Makes a policy.
  public init(maxConcurrent: Int = 4, failures: Failures = .goOn) {
    self.maxConcurrent = maxConcurrent
    self.failures = failures
  }

  /// Makes one call after the other.
  public static let serial = GroupPolicy(maxConcurrent: 1)
}

/// The progress of a group.
public struct GroupProgress: Hashable, Sendable {
  /// The number of calls in the group.
  public let total: Int
  /// The number of calls that have ended, with any result.
  public internal(set) var finished = 0
  /// The number of calls that have failed, including cancelled ones.
  public internal(set) var failed = 0
  /// The index of the call that ended last, from 0; nil before the first.
  public internal(set) var last: Int?
}
