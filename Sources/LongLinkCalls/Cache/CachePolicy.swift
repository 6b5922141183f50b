// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// How long the responses of a method are cached, and which pushes invalidate them. They are not
/// cached if neither `fresh` nor `stale` is above zero.
public struct CachePolicy: Hashable, Sendable {
  /// How long a cached response is used without a request. Default 60 s.
  public var fresh: Duration
  /// How long after `fresh` a cached response is still used, while one request refreshes it.
  /// Default zero.
  public var stale: Duration
  /// The types of pushes that invalidate the method's cached responses. Default: none.
  ///
  /// If there are any, a lost connection also invalidates them, because a push may be lost with it.
  public var invalidatedBy: [MessageType]

  /// Makes a policy.
  public init(
    fresh: Duration = .seconds(60), stale: Duration = .zero, invalidatedBy: [MessageType] = []
  ) {
    self.fresh = fresh
    self.stale = stale
    self.invalidatedBy = invalidatedBy
  }

  /// A policy without caching.
  public static let off = CachePolicy(fresh: .zero)

  /// Whether responses are cached.
  var isOn: Bool { fresh > .zero || stale > .zero }
}
