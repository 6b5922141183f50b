// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// For how long the answers of a method are kept, and what invalidates them.
public struct CachePolicy: Hashable, Sendable {
  /// How long an answer is as good as a new one. Default 60 s.
  public var fresh: Duration
  /// For how long after that it is still given, while one request fetches a new one. Default: not
  /// at all.
  public var stale: Duration
  /// Types of pushes at which the answers of the method are dropped. Default: none.
  ///
  /// They are dropped as well when the connection is lost, since a push may be lost with it.
  public var invalidatedBy: [MessageType]

  /// Makes a policy.
  public init(
    fresh: Duration = .seconds(60), stale: Duration = .zero, invalidatedBy: [MessageType] = []
  ) {
    self.fresh = fresh
    self.stale = stale
    self.invalidatedBy = invalidatedBy
  }

  /// Answers are not kept.
  public static let off = CachePolicy(fresh: .zero)

  /// Whether anything is kept.
  var isOn: Bool { fresh > .zero || stale > .zero }
}
