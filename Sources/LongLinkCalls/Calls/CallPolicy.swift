// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// How a call is made: the options of its request, its de-duplication and its caching.
///
/// Policies override each other field by field. From the highest precedence to the lowest, they are
/// those of the call; of its method in `CallConfiguration.policies`; of the method itself; of its
/// ``CallService``; and `CallConfiguration.policy`. A field that is nil in all of them has the
/// default below.
public struct CallPolicy: Hashable, Sendable {
  /// The options of the request; each of its fields is overridden separately.
  public var options: RequestOptions
  /// Whether identical concurrent calls share one exchange. Default: true for methods that only
  /// read, and for cached calls.
  public var isShared: Bool?
  /// How long responses are cached. Default: not at all.
  public var cache: CachePolicy?
  /// Whether to bypass the cache: the call makes a request, and its response is cached. Default
  /// false.
  public var reloads: Bool?

  /// Makes a policy; fields that are nil are left to other policies.
  public init(
    _ options: RequestOptions = RequestOptions(), isShared: Bool? = nil, cache: CachePolicy? = nil,
    reloads: Bool? = nil
  ) {
    self.options = options
    self.isShared = isShared
    self.cache = cache
    self.reloads = reloads
  }

  /// Returns this policy with its nil fields filled in from `wider`.
  public func over(_ wider: CallPolicy) -> CallPolicy {
    CallPolicy(
      options.over(wider.options),
      isShared: isShared ?? wider.isShared,
      cache: cache ?? wider.cache,
      reloads: reloads ?? wider.reloads)
  }
}
