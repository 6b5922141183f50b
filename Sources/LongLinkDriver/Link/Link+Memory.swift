// SPDX-License-Identifier: Apache-2.0

@_spi(Containers) internal import LongLinkCore
internal import LongLinkTransport

extension Link {
  /// How much the connection is to blame where memory is short.
  package var memoryWeight: Int { account.weight(at: loop.now) }

  /// Tells the budget, where there is one, what the connection holds by now.
  @inline(__always)
  func followMemory() {
    if let share { followMemory(in: share) }
  }

  private func followMemory(in share: MemoryShare) {
    let held = isAlive ? core.held : HeldMemory(outlived: core.held.outlived)
    if let more = account.change(to: held, at: loop.now) { share.add(more) }
  }

  /// Has the connection hold less while the server's memory is scarce, and as much as ever after
  /// that.
  @inline(__always)
  func followScarcity() {
    if let share { core.mostUnread = share.budget.mostUnread }
  }

  /// Reads on where it was left since memory was scarce, which it is no more.
  package func recover() {
    followScarcity()
    if isHeld, !core.holdsReading { awaitEndOfTurn() }
  }

  /// Whether to leave what came unread for this turn; readiness tells of it again in the next.
  ///
  /// While memory is short nothing is read until some connections have made room, which they do
  /// within a turn. While handlers hold the rest whose requests were given up, they have some turns
  /// to return in: then a request need not be refused for what others have left behind. Connections
  /// that hold little are read a little meanwhile.
  @inline(__always)
  func postponesReading() -> Bool {
    guard let budget = share?.budget else { return false }
    // The handlers of many requests wait for their turn: more would make those of others wait.
    if loop.hasBacklog, core.requestsRunning + core.requestsOutlived > 64 { return true }
    isSparing = budget.isShort || !hasMemory
    guard isSparing, !isSmall, postponements < 64 else {
      postponements = 0
      return false
    }
    postponements += 1
    return true
  }

  /// Whether the server has room for one more request; true where nothing bounds it.
  @inline(__always)
  var hasMemory: Bool { share?.hasRoom ?? true || hasReserve }

  /// Whether the connection is one of those that a reserve is kept for: it has few requests, and
  /// has left none behind. So those that leave many behind do not shut it out.
  private var hasReserve: Bool {
    guard let budget = share?.budget, budget.hasReserve else { return false }
    return hasFewRequests
  }

  private var hasFewRequests: Bool {
    core.requestsOutlived == 0 && core.requestsRunning <= Link.fewRequests
  }

  /// Whether it is not to blame for what the server holds.
  private var isSmall: Bool { hasFewRequests && account.told.open <= Link.smallBytes }

  private static let fewRequests = 4
  /// A message of 64 KiB in memory that was doubled for it, and four requests.
  private static let smallBytes = 2 * 65_536 + 4 * Connection.requestOverhead

  /// Gives the loop its memory back that was read into, and keeps what is left of that.
  func returnMemory() {
    borrowsQueue = false
    if core.input.isEmpty {
      core.input.removeAll()
      loop.swapReadQueue(with: &core.input)
    } else {
      var rest = core.input.detachRest()
      swap(&core.input, &rest)
      loop.swapReadQueue(with: &rest)
    }
  }

  /// Gives the loop the memory that was read into where it is large beside what is left.
  func releaseInput() {
    if !borrowsQueue {
      core.input.releaseRoom(to: &loop.spareQueue, upTo: Link.largestSpare)
    }
  }

  /// Keeps nothing of what the peer sent once nothing more is done with it: handlers that go on may
  /// keep the link.
  func releaseMemory() {
    if !borrowsQueue { core.releaseInput() }
    lastMetadata = ReceivedMetadata()
  }

  /// Gives back what is held for nothing.
  package func releaseRoom() {
    core.releaseRoom()
    followMemory()
  }
}
