// SPDX-License-Identifier: Apache-2.0

/// Decides whether, how much and why a link reads or does not read.
///
/// The link passes it the facts about the core, the loop and the server, and follows its decisions.
/// It is a plain value without a clock.
struct ReadGate: Equatable {
  /// Why a turn reads nothing although bytes may wait. Readiness reports these bytes again in the
  /// next turn.
  enum Obstacle: Equatable {
    /// Many handlers of the connection are queued: more would delay those of other connections.
    case queue
    /// Memory is short until evicted connections have freed some.
    case memory
  }

  /// How much a turn may read.
  struct Allowance: Equatable {
    /// The most bytes of one read, roughly.
    var size: Int
    /// The most reads in the turn, so that other transports get their turn.
    var reads: Int
  }

  /// Whether the core has held reading since the last `resumes`; frames may wait in the input.
  private(set) var isHeld = false
  /// Whether bytes were left in the transport for lack of memory or time.
  private(set) var leavesBytes = false
  /// Whether reads are small because memory is short.
  private var isSparing = false
  /// The number of turns in a row that read nothing, so that cancelled handlers could return.
  private var postponements = 0
  /// The number of turns whose end was awaited because a handler's job had not run yet.
  private var turnsForHandlers = 0

  /// The size of a frame with a body of 64 KiB and a little metadata.
  private static let largeFrame = 65_536 + 64
  /// The most bytes of one read, sized to stay in the processor's nearer caches while they are
  /// parsed. Twice or half of it costs 10 % or more with bodies of 64 KiB.
  static let fullRead = 2 * largeFrame
  /// The most bytes of one read while the server's memory is scarce.
  static let sparingRead = largeFrame
  /// The most bytes of one read in a long turn, before the connection is open, and while memory is
  /// short.
  static let littleRead = 4_096
  private static let readsPerTurn = 4
  private static let mostPostponements = 64
  private static let mostTurnsForHandlers = 16

  // MARK: Whether

  /// Returns why nothing is to be read in this turn; nil if reading is allowed.
  ///
  /// If handlers of abandoned requests hold the memory, they get up to 64 turns to return, so that
  /// no new request has to be refused because of them. Small connections are still read, 4 KiB at a
  /// time.
  @inline(__always)
  mutating func obstacle(
    isQueued: @autoclosure () -> Bool, isShort: @autoclosure () -> Bool,
    isSmall: @autoclosure () -> Bool
  ) -> Obstacle? {
    leavesBytes = true
    if isQueued() { return .queue }
    isSparing = isShort()
    if isSparing, !isSmall(), postponements < ReadGate.mostPostponements {
      postponements += 1
      return .memory
    }
    postponements = 0
    leavesBytes = false
    return nil
  }

  /// Notes that the core has stopped reading.
  mutating func hold() { isHeld = true }

  /// Notes whether the core still stops reading. Returns true if it has just resumed, so that
  /// waiting frames are to be parsed.
  mutating func resumes(isHeld holds: Bool) -> Bool {
    defer { isHeld = holds }
    return isHeld && !holds
  }

  // MARK: How much

  /// Begins to read, and returns how much.
  ///
  /// `isLate` says that the turn is long, `isFresh` that the connection is not open yet, and
  /// `isScarce` that memory is scarce. `brake` is the most bytes that the peer's rate allows at
  /// once.
  mutating func begin(isLate: Bool, isFresh: Bool, isScarce: Bool, brake: Int?) -> Allowance {
    leavesBytes = false
    var size =
      isLate || isSparing || isFresh
      ? ReadGate.littleRead : isScarce ? ReadGate.sparingRead : ReadGate.fullRead
    if let brake { size = min(size, max(ReadGate.littleRead, brake)) }
    return Allowance(size: size, reads: min(ReadGate.readsPerTurn, size / ReadGate.littleRead))
  }

  /// Notes that the last read of a turn was full, so that more bytes may wait.
  mutating func leaveBytes() { leavesBytes = true }

  // MARK: Turns for handlers

  /// Whether to await the end of another turn, because the job of a cancelled handler may still
  /// wait on the loop.
  mutating func awaitsHandlers(loopLeavesJobs: Bool) -> Bool {
    guard loopLeavesJobs, turnsForHandlers < ReadGate.mostTurnsForHandlers else {
      turnsForHandlers = 0
      return false
    }
    turnsForHandlers += 1
    return true
  }
}
