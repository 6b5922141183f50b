// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
package import LongLinkTransport
internal import Synchronization

/// What the connections of one server may make it hold together, over all its loops.
///
/// Each loop has a share, which counts what its connections hold. Once open connections hold half
/// of what they may, empty buffers left out, each is read less at a time, and not before its peer
/// has taken most of what waits for it: so peers that take their answers are only slowed down. Once
/// they hold more than three quarters of the limit, nothing is read from any of them until the loop
/// that holds the most has given its empty buffers back and, where that is not enough, ended those
/// of its connections that hold the most. So a connection that holds little is safe from those that
/// hold much, and a quarter is left for requests whose handlers go on after they were given up,
/// which no end of a connection frees.
package final class MemoryBudget: Sendable {
  /// Past so many bytes no requests are taken but from connections that have few. What is held is a
  /// quarter more at most, and what one turn of a loop adds.
  package let limit: Int
  private let open = Atomic(0)
  private let room = Atomic(0)
  private let outlived = Atomic(0)
  private let scarce = Atomic(false)
  private let isRelieving = Atomic(false)
  /// Whether connections were ended whose handlers have not returned yet.
  private let awaitsHandlers = Atomic(false)
  private let shares = Mutex<[Holder]>([])

  /// A share has the budget, which must not keep it.
  private struct Holder {
    weak let share: MemoryShare?
  }

  package init(limit: Int) {
    self.limit = limit
  }

  /// What is held now.
  package var held: Int { open.load(ordering: .relaxed) + outlived.load(ordering: .relaxed) }

  /// What open connections may hold: three quarters, or less where requests hold much that were
  /// given up, but always a quarter.
  private var openLimit: Int {
    let rest = limit - outlived.load(ordering: .relaxed)
    return min(limit / 4 * 3, max(limit / 4, rest))
  }

  /// Whether open connections hold so much that some have to end.
  package var isShort: Bool { open.load(ordering: .relaxed) > openLimit }

  /// Whether they hold so much that each is to hold less.
  package var isScarce: Bool { scarce.load(ordering: .relaxed) }

  /// How many bytes a peer may leave unread before it is read no more: while memory is scarce the
  /// fewer, the less is left of it.
  package var mostUnread: Int {
    guard isScarce else { return .max }
    let limit = openLimit
    let left = limit - open.load(ordering: .relaxed) + room.load(ordering: .relaxed)
    return max(0, MemoryBudget.fewUnread * left / max(1, limit / 2))
  }

  /// So many where memory begins to be scarce: more than is written at once in a long turn.
  private static let fewUnread = 196_608

  /// Whether no more requests can be taken, but for the reserve.
  package var isExhausted: Bool { held > limit }

  /// Whether connections with few requests can have more.
  package var hasReserve: Bool { held <= limit / 4 * 5 }

  /// Where ending connections stops again: then there is some room before the next has to end.
  package var isRelieved: Bool { open.load(ordering: .relaxed) <= openLimit / 6 * 5 }

  /// Makes the share of one loop. `relieve` is called there when its connections are to make room,
  /// `recover` when memory is scarce no more.
  package func makeShare(
    on loop: EventLoop, relieve: @escaping @Sendable () -> Void,
    recover: @escaping @Sendable () -> Void
  ) -> MemoryShare {
    let share = MemoryShare(of: self, on: loop, relieve: relieve, recover: recover)
    shares.withLock { shares in
      shares.removeAll { $0.share == nil }
      shares.append(Holder(share: share))
    }
    return share
  }

  fileprivate func add(_ more: HeldMemory) {
    let open = open.add(more.open, ordering: .relaxed).newValue
    let room = room.add(more.room, ordering: .relaxed).newValue
    outlived.add(more.outlived, ordering: .relaxed)
    followScarcity(of: open - room)
    if more.open > 0 || more.outlived > 0, isShort { relieve() }
    if more.outlived <= -MemoryBudget.largeBytes, awaitsHandlers.load(ordering: .relaxed) {
      returnToSystem()
    }
  }

  /// Memory is scarce from half of what may be held on, and until a sixth of that is free again.
  private func followScarcity(of used: Int) {
    let limit = openLimit / 2
    guard scarce.load(ordering: .relaxed) else {
      if used > limit { scarce.store(true, ordering: .relaxed) }
      return
    }
    guard used <= limit / 6 * 5, scarce.exchange(false, ordering: .relaxed) else { return }
    for share in shares.withLock({ $0.compactMap(\.share) }) {
      share.loop.execute { share.recover() }
    }
  }

  /// What is worth to be given back to the system at once while memory is short.
  private static let largeBytes = 1_048_576

  /// Gives back what ended connections have freed: the C library may keep it, beside what comes
  /// next.
  private func returnToSystem() {
    let isOver = outlived.load(ordering: .relaxed) < MemoryBudget.largeBytes
    awaitsHandlers.store(!isOver, ordering: .relaxed)
    SystemMemory.returnFree()
  }

  /// Asks the loop whose connections hold the most to make room, one at a time.
  private func relieve() {
    let isFirst = isRelieving.compareExchange(
      expected: false, desired: true, ordering: .relaxed
    ).exchanged
    guard isFirst else { return }
    let largest = shares.withLock { shares in
      shares.compactMap(\.share).max {
        $0.open.load(ordering: .relaxed) < $1.open.load(ordering: .relaxed)
      }
    }
    guard let largest else { return isRelieving.store(false, ordering: .relaxed) }
    largest.loop.execute { [self] in
      let before = largest.open.load(ordering: .relaxed)
      if isShort {
        largest.relieve()
        returnToSystem()
      }
      isRelieving.store(false, ordering: .relaxed)
      // Another loop may hold the rest, or more by now.
      if isShort, largest.open.load(ordering: .relaxed) < before { relieve() }
    }
  }
}

/// What the connections of one loop hold of a server's budget, and how they make room.
package final class MemoryShare: Sendable {
  package let budget: MemoryBudget
  fileprivate let open = Atomic(0)
  fileprivate let loop: EventLoop
  fileprivate let relieve: @Sendable () -> Void
  fileprivate let recover: @Sendable () -> Void

  fileprivate init(
    of budget: MemoryBudget, on loop: EventLoop, relieve: @escaping @Sendable () -> Void,
    recover: @escaping @Sendable () -> Void
  ) {
    self.budget = budget
    self.loop = loop
    self.relieve = relieve
    self.recover = recover
  }

  /// Whether one more request can be taken.
  @inline(__always)
  var hasRoom: Bool { !budget.isExhausted }

  /// Tells of a change in what a connection holds.
  func add(_ more: HeldMemory) {
    open.add(more.open, ordering: .relaxed)
    budget.add(more)
  }
}
