// SPDX-License-Identifier: Apache-2.0

internal import LongLinkOnceStore
internal import Synchronization

/// The handlers that still run although the requests for which they were called have ended, by
/// scope. All scopes of clients without a principal are one here, because anyone can make many.
///
/// A scope at its share begins nothing new. The handlers that it had begun before may still lose
/// their requests, so that it may come to have more; of these no more than its share count against
/// the bound of all. So one scope takes a quarter of that, whatever it does.
final class DetachedHandlers: Sendable {
  private struct Counts {
    /// By scope; nil stands for all without a principal.
    var byScope: [OnceScope?: Int] = [:]
    /// Those that count against the bound of all.
    var counted = 0
  }

  private let most: Int
  private let counts = Mutex(Counts())
  private let total = Atomic<Int>(0)

  init(most: Int) {
    self.most = most
  }

  var count: Int { total.load(ordering: .relaxed) }

  private var share: Int { most / 4 }

  /// Whether a scope may begin a handler with a new key.
  func hasRoom(for scope: OnceScope) -> Bool {
    guard count > 0 else { return true }
    return counts.withLock { counts in
      counts.counted < most && counts.byScope[Self.owner(of: scope), default: 0] < share
    }
  }

  func add(_ scope: OnceScope) {
    total.add(1, ordering: .relaxed)
    counts.withLock { counts in
      let before = counts.byScope[Self.owner(of: scope), default: 0]
      counts.byScope[Self.owner(of: scope)] = before + 1
      if before < share { counts.counted += 1 }
    }
  }

  func remove(_ scope: OnceScope) {
    total.subtract(1, ordering: .relaxed)
    counts.withLock { counts in
      let after = counts.byScope[Self.owner(of: scope), default: 1] - 1
      counts.byScope[Self.owner(of: scope)] = after == 0 ? nil : after
      if after < share { counts.counted -= 1 }
    }
  }

  private static func owner(of scope: OnceScope) -> OnceScope? { scope.isAnonymous ? nil : scope }
}
