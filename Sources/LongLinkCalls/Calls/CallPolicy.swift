// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// How a call is made: the options of its request, and whether its answer is shared and kept.
///
/// A field that says nothing leaves the word to the next wider policy. These are, the narrowest
/// first: the call's; `CallConfiguration.policies` for its method; the method's own; that of its
/// ``CallService``; `CallConfiguration.policy`. Beneath them is what the client does by itself.
public struct CallPolicy: Hashable, Sendable {
  /// How the request is made; each field by itself may say nothing.
  public var options: RequestOptions
  /// Whether identical calls that are under way together share one exchange. Where nobody says:
  /// those of methods that only read, and those whose answers are cached.
  public var isShared: Bool?
  /// Whether, and for how long, answers are kept. Where nobody says: they are not.
  public var cache: CachePolicy?
  /// Whether the server is asked whatever the cache holds; the answer is kept. Where nobody says:
  /// no.
  public var reloads: Bool?

  /// Makes a policy that says what it is given.
  public init(
    _ options: RequestOptions = RequestOptions(), isShared: Bool? = nil, cache: CachePolicy? = nil,
    reloads: Bool? = nil
  ) {
    self.options = options
    self.isShared = isShared
    self.cache = cache
    self.reloads = reloads
  }

  /// This policy, with the words of a wider one where it has none.
  public func over(_ wider: CallPolicy) -> CallPolicy {
    CallPolicy(
      options.over(wider.options),
      isShared: isShared ?? wider.isShared,
      cache: cache ?? wider.cache,
      reloads: reloads ?? wider.reloads)
  }
}
