// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
package import LongLinkTransport
internal import Synchronization

/// The memory budget of one server's connections, over all of its loops.
///
/// Each loop has a share, which counts what its connections hold. There are two thresholds:
/// - Memory is scarce when open connections use half of their limit, not counting empty buffers.
/// Reads become smaller, and a connection is read only when its peer has taken most of the output
/// that waits for it. Peers that read their responses are only slowed down.
/// - Memory is short when open connections hold more than three quarters of `limit`. No connection
///   is read until the loop that holds the most has freed its empty buffers and, if that is not
///   enough, evicted the connections with the greatest weight: bytes times the time that they are
///   held.
///
/// So connections that hold little are safe from those that hold much. A quarter is left for
/// handlers of abandoned requests, because evicting connections does not free their memory.
package final class MemoryBudget: Sendable {
  /// The limit in bytes. Above it, only connections with few requests may add more. At most a
  /// quarter more is held, plus what one turn of a loop adds.
  package let limit: Int
  private let open = Atomic(0)
  private let room = Atomic(0)
  private let outlived = Atomic(0)
  private let scarce = Atomic(false)
  private let isRelieving = Atomic(false)
  /// Whether handlers of evicted connections have not returned yet.
  private let awaitsHandlers = Atomic(false)
  private let shares = Mutex<[Holder]>([])
  private let deciding = Mutex(())

  /// A weak reference to a share, because a share retains the budget.
  private struct Holder {
    weak let share: MemoryShare?
  }

  private let returnFree: @Sendable () -> Void

  /// Makes a budget of this many bytes. `returnFree` returns freed memory to the system.
  package init(limit: Int, returnFree: @escaping @Sendable () -> Void = SystemMemory.returnFree) {
    self.limit = limit
    self.returnFree = returnFree
  }

  /// The bytes held now.
  package var held: Int { open.load(ordering: .relaxed) + outlived.load(ordering: .relaxed) }

  /// The bytes that open connections may hold: three quarters of `limit`; less if handlers of
  /// abandoned requests hold much, but at least a quarter.
  private var openLimit: Int {
    let rest = limit - outlived.load(ordering: .relaxed)
    return min(limit / 4 * 3, max(limit / 4, rest))
  }

  /// Whether open connections hold so much memory that some must be evicted.
  package var mustEvict: Bool { open.load(ordering: .relaxed) > openLimit }

  /// Whether open connections hold so much memory that each of them should hold less.
  package var isScarce: Bool { scarce.load(ordering: .relaxed) }

  /// The most unread output, in bytes, with which a peer's requests are still read. It shrinks with
  /// the memory that is left; unlimited while memory is not scarce.
  package var mostUnread: Int {
    guard isScarce else { return .max }
    let limit = openLimit
    let left = limit - open.load(ordering: .relaxed) + room.load(ordering: .relaxed)
    return max(0, MemoryBudget.fewUnread * left / max(1, limit / 2))
  }

  /// `mostUnread` when memory becomes scarce: more than a long turn writes at once.
  private static let fewUnread = 196_608

  /// Whether memory is used up, so that new requests may only use the reserve.
  package var isExhausted: Bool { held > limit }

  /// Calls `add` if a body's decoded part of `count` bytes has room, and returns whether it has.
  /// Some room is left for other requests, which would otherwise get a connection evicted. A small
  /// part may use the reserve. One thread decides at a time, so that two do not take the same room.
  func addDecoded(_ count: Int, isLittle: Bool, _ add: () -> Void) -> Bool {
    deciding.withLock { _ in
      let open = open.load(ordering: .relaxed)
      let hasRoom =
        isLittle
        ? held + count <= reserve : open + count <= openLimit / 6 * 5 && held + count <= limit
      if hasRoom { add() }
      return hasRoom
    }
  }

  /// The most bytes that one body may take together with its decoded form.
  var mostDecoded: Int { limit / 4 * 3 / 6 * 5 }

  /// The most bytes that may be held, including the reserve for connections with few requests.
  private var reserve: Int {
    let (sum, overflows) = limit.addingReportingOverflow(limit / 4)
    return overflows ? .max : sum
  }

  /// Whether the reserve for connections with few requests has room.
  package var hasReserve: Bool { held <= reserve }

  /// Whether evicting can stop, with some room before the next eviction.
  package var isRelieved: Bool { open.load(ordering: .relaxed) <= openLimit / 6 * 5 }

  /// Makes the share of one loop. On that loop, `relieve` is called to free memory and `recover`
  /// when memory is no longer scarce.
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
    updateScarcity(of: open - room)
    if more.open > 0 || more.outlived > 0, mustEvict { relieve() }
    if more.outlived <= -MemoryBudget.largeBytes, awaitsHandlers.load(ordering: .relaxed) {
      returnToSystem()
    }
  }

  /// Memory becomes scarce above half of `openLimit`, and stops being scarce at 5/6 of that half.
  private func updateScarcity(of used: Int) {
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

  /// The number of freed bytes from which on they are returned to the system while memory is short.
  private static let largeBytes = 1_048_576

  /// Returns the memory that evicted connections have freed to the system. Otherwise, the C library
  /// might keep it.
  private func returnToSystem() {
    let isOver = outlived.load(ordering: .relaxed) < MemoryBudget.largeBytes
    awaitsHandlers.store(!isOver, ordering: .relaxed)
    returnFree()
  }

  /// Asks the loop whose connections hold the most to free memory. One loop does so at a time.
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
      if mustEvict {
        largest.relieve()
        returnToSystem()
      }
      isRelieving.store(false, ordering: .relaxed)
      // Another loop may now hold the most.
      if mustEvict, largest.open.load(ordering: .relaxed) < before { relieve() }
    }
  }
}

/// One loop's share of a server's memory budget.
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

  /// Whether the server has memory for one more request.
  @inline(__always)
  var hasRoom: Bool { !budget.isExhausted }

  /// Reports a change of the memory that a connection holds.
  func add(_ more: HeldMemory) {
    open.add(more.open, ordering: .relaxed)
    budget.add(more)
  }
}
