// SPDX-License-Identifier: Apache-2.0

/// How many calls of a group are under way at once, and what a failure means to the others.
public struct GroupPolicy: Hashable, Sendable {
  /// The most calls that are under way at once, at least 1. Default 4.
  public var maxConcurrent: Int
  /// What happens when calls fail. Default: all others go on.
  public var failures: Failures

  /// What a failed call means to the others of its group.
  public enum Failures: Hashable, Sendable {
    /// Nothing: each call is made.
    case goOn
    /// When more than so many have failed, calls that have not ended are cancelled, and those that
    /// were not begun are not.
    case stopAfter(Int)

    /// The first failure cancels the others.
    public static let stop = Failures.stopAfter(0)
  }

  /// Makes a policy.
  public init(maxConcurrent: Int = 4, failures: Failures = .goOn) {
    self.maxConcurrent = maxConcurrent
    self.failures = failures
  }

  /// One call after the other.
  public static let serial = GroupPolicy(maxConcurrent: 1)
}

/// How far a group has come.
public struct GroupProgress: Hashable, Sendable {
  /// The calls of the group.
  public let total: Int
  /// Those that have ended, whichever way.
  public internal(set) var finished = 0
  /// Those of them that failed, cancelled ones included.
  public internal(set) var failed = 0
  /// The place of the call that ended last, from 0; nil at first.
  public internal(set) var last: Int?
}
