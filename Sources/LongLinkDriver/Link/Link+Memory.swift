// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

extension Link {
  /// The weight by which the server picks a connection to evict when its memory is short.
  package var memoryWeight: MemoryAccount.Weight {
    account.weight(
      at: loop.now, unfinished: isAlive ? HeldMemory.unfinished(of: core) : 0,
      decoded: memory.decoded?.bytes ?? 0, longest: core.settings.messageTimeout)
  }

  /// Reports the memory that the connection holds to the server's budget, if there is one.
  @inline(__always)
  func reportMemory() {
    if let share = memory.share { reportMemory(to: share) }
  }

  private func reportMemory(to share: MemoryShare) {
    let more = account.change(
      to: isAlive ? core.held.adding(layer?.heldBytes) : core.held.outlivedAlone, at: loop.now,
      moved: core.counters.bytesReceived &+ core.counters.bytesSent)
    if let more { share.add(more) }
  }

  /// Lowers the connection's bound on unread output while the server's memory is scarce, and lifts
  /// it afterwards.
  @inline(__always)
  func updateScarcity() {
    guard let share = memory.share else { return }
    let most = share.budget.mostUnread
    #if Operations
    if most != core.readHold.mostUnread { recorded(.mostUnread, at: loop.now, UInt64(most)) }
    #endif
    core.readHold.mostUnread = most
  }

  /// Resumes reading that was paused while memory was scarce.
  package func recover() {
    updateScarcity()
    if gate.isHeld, !core.holdsReading { awaitEndOfTurn() }
  }

  /// Whether the server's memory, and the queue of handlers, allow reading in this turn.
  func mayRead() -> Bool {
    gate.obstacle(
      isQueued: memory.share != nil && loop.hasBacklog
        && core.inbound.count + core.inbound.outlived > 64,
      isShort: memory.isShort(for: core.inbound),
      isSmall: memory.isSmall(core.inbound, counted: account.told.open)) == nil
  }

  /// Frees the peer's input once it is no longer parsed, since handlers that still run may retain
  /// the link. From then on, decoded bodies count as those of abandoned requests.
  func releaseMemory() {
    if !buffer.isLent { HeldMemory.releaseInput(of: &core) }
    core.inbox.forgetMetadata()
    memory.decoded?.connectionEnds()
  }

  /// Frees the connection's empty buffers.
  package func releaseRoom() {
    HeldMemory.releaseRoom(of: &core)
    if isAlive { layer?.releaseStorage() }
    reportMemory()
  }
}
