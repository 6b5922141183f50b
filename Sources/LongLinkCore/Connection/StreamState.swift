// SPDX-License-Identifier: Apache-2.0

/// The items of one exchange on one connection, in both directions.
struct StreamState: Equatable, Sendable {
  /// The items that this side receives; nil if the direction was not opened.
  var incoming: ItemInflow?
  /// The items that this side sends; nil if the direction was not opened.
  var outgoing: ItemOutflow?
  /// Whether this side's request, if it is the requester, has been encoded to its end.
  var isRequestWhole: Bool
  /// Whether the peer has sent an item, or credit.
  var hasHeardPeer = false
  /// Whether this side has sent an item, or credit: its response then cannot have the refused mark.
  var hasSpoken = false
}

/// The receiver's account of one direction of a stream. All numbers are bytes of credit.
struct ItemInflow: Equatable, Sendable {
  /// The first credit: this much of the limit of all windows is kept until the items end.
  let share: Int
  /// The most credit that the peer has while the application keeps up.
  private(set) var window: Int
  /// The size up to which the window grows.
  let largestWindow: Int
  /// What the peer can send now.
  private(set) var credit: Int
  /// The cost of whole items that the application has not taken.
  var untaken = 0
  /// The cost of the fragments of the item that is arriving; 0 between items.
  var partial = 0
  private var path = PathWatch()
  var hasEnded = false
  /// Whether the application holds all of `untaken`.
  var isLent = false
  /// Whether the application was asked to hold all items, within the item that is arriving.
  var wasReported = false

  init(share: Int, window: Int, largestWindow: Int) {
    self.share = share
    self.window = max(window, Wire.leastCredit)
    self.largestWindow = max(self.window, largestWindow)
    credit = share
  }

  /// What this direction takes of the limit of all windows.
  var reserved: Int { hasEnded ? held : max(share, credit + held) }

  /// The most that `reserved` can become, without an item that is larger than the window.
  var ceiling: Int { hasEnded ? held : max(reserved, window) }

  /// What this direction adds to the sums of all streams.
  var sums: (reserved: Int, ceiling: Int, held: Int) { (reserved, ceiling, held) }

  /// Whether whole items wait that fill the window, where no credit holds the peer back. An item
  /// that is arriving alone is read to its end.
  var isFull: Bool { untaken > 0 && held >= window }

  /// What has arrived and was not taken.
  var held: Int { untaken + partial }

  /// Whether no whole item waits for the application. Within the next item, those that it holds do
  /// not count.
  var hasNoneWaiting: Bool { untaken == 0 || isLent && partial > 0 }

  /// The credit below which the peer gets more while no whole item waits.
  private var leastOut: Int { max(Wire.leastCredit, window / 2) }

  /// Whether the peer may be unable to end its item because items were not taken. The application
  /// has not told whether it holds them.
  var isStuck: Bool {
    partial > 0 && untaken > 0 && !isLent && !wasReported && !hasEnded && credit < leastOut
  }

  /// How much credit to grant now, in one lump; 0 for none.
  ///
  /// While whole items wait for the application, half of the window must be free. When none do, the
  /// peer must be able to go on, also within an item that is larger than the window.
  var lump: Int {
    guard !hasEnded else { return 0 }
    let free = window - credit - held
    if !hasNoneWaiting { return free >= window / 2 ? free : 0 }
    guard credit < leastOut else { return 0 }
    return max(free, partial > 0 ? window / 2 : 0, Wire.leastCredit - credit)
  }

  /// Notes the arrival of a frame.
  @inline(__always)
  mutating func arrived(_ cost: Int, at now: LinkInstant) {
    credit -= cost
    path.arrived(cost, at: now)
  }

  /// Notes that an item has arrived to its end.
  mutating func completed(_ cost: Int) {
    untaken += cost
    isLent = false
    wasReported = false
  }

  /// Notes that credit was granted.
  mutating func granted(_ lump: Int, at now: LinkInstant) {
    path.granted(behind: credit, at: now)
    credit += lump
  }

  /// Doubles the window if it is too small for the delay of the path. `room` is the most by which
  /// it can grow.
  @inline(__always)
  mutating func growIfTooSmall(room: Int) {
    guard path.hasStalled else { return }
    path.hasStalled = false
    if window < largestWindow, window <= room, path.holds(window) {
      window = min(window * 2, largestWindow)
    }
  }
}

/// Finds out whether the peer has to wait for credit because of the delay of the path.
///
/// The peer has waited if its bytes stopped right where its older credit was used up, for a large
/// part of the time from the grant of the next to its first use. If they stopped long before that
/// grant, the peer waited for the application instead.
private struct PathWatch: Equatable, Sendable {
  private var total = 0
  private var lastArrival = LinkInstant.distantFuture
  /// The total at which the peer begins to use the credit that was granted at `grantedAt`; nil if
  /// it has begun to use it.
  private var grantBegins: Int?
  private var grantedAt = LinkInstant.distantFuture
  /// The shortest time from a grant to its first use, in nanoseconds: that of the path. It holds
  /// until the items end: if the path becomes many times longer, the window grows no more.
  private var shortestWait = Int64.max
  /// When the peer began to use the last grant that it has used, and the total then.
  private var usedAt = LinkInstant.distantFuture
  private var usedTotal = 0
  /// The bytes that came from the use of one grant to that of the next, and the nanoseconds.
  private var roundBytes = 0
  private var roundTime = Int64.max
  /// Whether the peer has waited for credit because of the path.
  var hasStalled = false

  /// Whether a window of this size is less than four times what comes within the path's time, at
  /// the pace of the last round.
  ///
  /// A peer on the same machine waits as well, while the processes take turns. A larger window
  /// would do little for it, but all that comes behind the items would wait longer.
  func holds(_ window: Int) -> Bool {
    Double(window) * Double(roundTime) < 4 * Double(roundBytes) * Double(shortestWait)
  }

  @inline(__always)
  mutating func arrived(_ cost: Int, at now: LinkInstant) {
    if let grantBegins, total + cost > grantBegins { used(grantBegins, at: now) }
    total += cost
    lastArrival = now
  }

  private mutating func used(_ grantBegins: Int, at now: LinkInstant) {
    let (wait, pause) = (now - grantedAt, now - lastArrival)
    shortestWait = min(shortestWait, wait)
    if usedAt != .distantFuture {
      roundBytes = total - usedTotal
      roundTime = now - usedAt
    }
    (usedAt, usedTotal) = (now, total)
    if total > grantBegins - Wire.leastCredit, pause >= wait / 4, pause <= wait + wait / 4 {
      hasStalled = true
    }
    self.grantBegins = nil
  }

  mutating func granted(behind credit: Int, at now: LinkInstant) {
    guard grantBegins == nil else { return }
    grantBegins = total + credit
    grantedAt = now
  }
}

/// The sender's account of one direction of a stream.
struct ItemOutflow: Equatable, Sendable {
  /// What this side can send now, in bytes of credit.
  var credit: Int
  /// The priority of its frames.
  let priority: UInt32
  /// Whether an item is not encoded to its end; its bytes are in `StreamTable.pendings`.
  var isPending = false
  /// Whether no item follows the pending one.
  var endsNext = false
  /// Whether the end has been encoded.
  var hasEnded = false
}

/// An item of this side that is not encoded to its end.
struct PendingItem: Equatable, Sendable {
  let body: [UInt8]
  /// The number of its bytes that have been encoded.
  var sent = 0
  /// The size of its fragment in the backlog; nil if none is there.
  var queued: Int?
  /// Whether its sender was told to wait for `itemSent`.
  var isAwaited = false
}
