// SPDX-License-Identifier: Apache-2.0

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
