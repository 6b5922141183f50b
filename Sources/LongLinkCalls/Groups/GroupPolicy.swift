// SPDX-License-Identifier: Apache-2.0

/// The concurrency of a group, and what happens when one of its calls fails.
public struct GroupPolicy: Hashable, Sendable {
  /// The most calls in progress, at least 1. Default 4.
  public var maxConcurrent: Int
  /// The most failed calls. When more have failed, the running calls are cancelled and no more are
  /// begun: with 0, at the first failure. Default nil: every call is made.
  public var mostFailures: Int?

  /// Makes a policy.
  public init(maxConcurrent: Int = 4, mostFailures: Int? = nil) {
    self.maxConcurrent = maxConcurrent
    self.mostFailures = mostFailures
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
