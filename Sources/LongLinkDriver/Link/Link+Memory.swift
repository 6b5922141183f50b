// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

extension Link {
  /// How much the connection is to blame where memory is short.
  package var memoryWeight: (amount: Int, isStalled: Bool) {
    let weight = account.weight(
      at: loop.now, unfinished: isAlive ? core.unfinishedBytes : 0, decoded: decoded?.bytes ?? 0,
      longest: core.settings.messageTimeout)
    return (weight.amount, weight.isStalled)
  }

  /// Reports the memory that the connection now holds to the budget, if any.
  @inline(__always)
  func reportMemory() {
    if let share { reportMemory(in: share) }
  }

  private func reportMemory(in share: MemoryShare) {
    var held = isAlive ? core.held : HeldMemory(outlived: core.held.outlived)
    if let layer, isAlive { held.open += layer.heldBytes }
    let more = account.change(
      to: held, at: loop.now, moved: core.counters.bytesReceived &+ core.counters.bytesSent)
    if let more { share.add(more) }
  }

  /// Lowers the connection's bound on unread output while the server's memory is scarce, and lifts
  /// it afterwards.
  @inline(__always)
  func updateScarcity() {
    if let share { core.readHold.mostUnread = share.budget.mostUnread }
  }

  /// Resumes reading that was paused while memory was scarce.
  package func recover() {
    updateScarcity()
    if gate.isHeld, !core.holdsReading { awaitEndOfTurn() }
  }

  /// Whether the connection is read in this turn, as far as the server's memory and its handlers
  /// allow it.
  func mayRead() -> Bool {
    guard let budget = share?.budget else {
      return gate.obstacle(isQueued: false, isShort: false, isSmall: true) == nil
    }
    let obstacle = gate.obstacle(
      isQueued: loop.hasBacklog && core.inbound.count + core.inbound.outlived > 64,
      isShort: budget.mustEvict || !hasMemory, isSmall: isSmall)
    return obstacle == nil
  }

  /// Whether the server has room for one more request; true without a budget.
  @inline(__always)
  var hasMemory: Bool { share?.hasRoom ?? true || hasReserve }

  /// Whether the reserve has room and the connection may use it: it has few requests and none that
  /// outlived its deadline or cancel. Peers that leave many behind cannot shut it out.
  private var hasReserve: Bool {
    guard let budget = share?.budget, budget.hasReserve else { return false }
    return hasFewRequests
  }

  private var hasFewRequests: Bool {
    core.inbound.outlived == 0 && core.inbound.count <= Link.fewRequests
  }

  /// Whether the connection contributes little to what the server holds.
  private var isSmall: Bool { hasFewRequests && heldBytes <= Link.smallBytes }

  /// What the connection holds, with what its handlers do.
  private var heldBytes: Int { account.told.open + (decoded?.bytes ?? 0) }

  private static let fewRequests = 4
  /// A message of 64 KiB in a buffer that doubled to hold it, and four requests.
  private static let smallBytes = 2 * 65_536 + 4 * Connection.requestOverhead

  /// Returns the loop's read buffer and keeps a copy of the unparsed rest.
  func returnMemory() {
    gate.setBorrowsQueue(false)
    if core.inbox.input.isEmpty {
      core.inbox.input.removeAll()
      loop.swapReadQueue(with: &core.inbox.input)
    } else {
      var rest = core.inbox.input.detachRest()
      swap(&core.inbox.input, &rest)
      loop.swapReadQueue(with: &rest)
    }
  }

  /// Gives the input buffer to the loop if it is large compared with the unparsed rest.
  func releaseInput() {
    if !gate.borrowsQueue {
      core.inbox.input.releaseRoom(to: &loop.spareQueue, upTo: Link.largestSpare)
    }
  }

  /// Frees the peer's input once it is no longer parsed, because handlers that still run may
  /// retain the link, and counts what they hold as theirs.
  func releaseMemory() {
    if !gate.borrowsQueue { core.releaseInput() }
    core.inbox.forgetMetadata()
    decoded?.connectionEnds()
  }

  /// Frees the connection's empty buffers.
  package func releaseRoom() {
    core.releaseRoom()
    if isAlive { layer?.releaseStorage() }
    reportMemory()
  }
}
