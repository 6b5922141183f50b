// SPDX-License-Identifier: Apache-2.0

// Items, ends and credit of the peer, and what this side sends of a stream. Everything that belongs
// to an exchange that has ended is dropped and counted; whatever a running exchange does not allow
// is a violation. `StreamTable` keeps the accounts.

extension Connection {
  /// Opens the stream of a request of the peer, if its metadata asks for one. Returns why the
  /// request is refused, if its first credit does not fit into the limit of all windows.
  mutating func streamRefusal(of request: Arrival) throws(Violation) -> Refusal? {
    guard request.hasMetadata, inbox.metadata.last.credit != nil || inbox.metadata.last.items,
      agreement.features.contains(.streams)
    else { return nil }
    return try streams.open(request.serial, inbox.metadata.last) ? nil : .tooMuchCredit
  }

  mutating func acceptItem(
    _ head: FrameHead, _ body: BodySlice
  ) throws(Violation) -> Arrival? {
    let serial = head.serial
    guard let slot = try streamSlot(of: head) else {
      if !head.flags.contains(.more) { counters.lateItems += 1 }
      return nil
    }
    switch try streams.arrived(head, in: slot, at: now) {
    case .whole(let cost):
      counters.itemsReceived += 1
      return Arrival(.item, serial: serial, tag: UInt32(clamping: cost), payload: body)
    case .fragment:
      unsafe inbox.withFrame(body) { unsafe streams.append($0, to: serial, slot) }
      perform(streams.grant(slot, at: now), of: serial)
      if streams.becomesStuck(slot) { report(.stream(.stuck, serial: serial)) }
      return nil
    case .last(let cost):
      counters.itemsReceived += 1
      let item = unsafe inbox.withFrame(body) { unsafe streams.takePartial(serial, joining: $0) }
      return Arrival(
        .item, serial: serial, tag: UInt32(clamping: cost), payload: inbox.assemble(item))
    }
  }

  mutating func acceptEnd(_ head: FrameHead) throws(Violation) -> Arrival? {
    guard let slot = try streamSlot(of: head) else {
      counters.lateEnds += 1
      return nil
    }
    try streams.ended(head, in: slot)
    return Arrival(.end, serial: head.serial, tag: 0, payload: .empty)
  }

  mutating func acceptCredit(_ head: FrameHead, _ body: BodySlice) throws(Violation) {
    let credit = try inbox.credit(body, of: head)
    guard let slot = try streamSlot(of: head), try streams.credited(credit, by: head, in: slot)
    else {
      counters.lateCredits += 1
      return
    }
    counters.creditsReceived += 1
    sendPending(head.serial)
    refill()
  }

  /// The slot of the stream that a frame belongs to; nil if its exchange has ended.
  private mutating func streamSlot(of head: FrameHead) throws(Violation) -> Int? {
    let serial = head.serial
    if let slot = streams.slot(of: serial) {
      guard streams[slot].isRequestWhole else { throw Violation(.itemNotExpected, head) }
      return slot
    }
    guard !settings.role.owns(serial) else {
      // Behind the first fragment of its response, the exchange has ended.
      if !assemblies.contains(serial) { report(.request(.stray(head.kind, serial: serial))) }
      return nil
    }
    guard let state = inbound.state(of: serial), state != .responding else { return nil }
    // The request has no stream, or is not complete.
    let isCredit = head.kind == .credit && state == .running
    throw Violation(isCredit ? .creditNotAllowed : .itemNotExpected, head)
  }

  /// Ends the connection because a frame of a stream came for a request of this side that has none.
  package mutating func rejectStray(_ kind: FrameKind, serial: UInt32) {
    violate(
      Violation(
        kind == .credit ? .creditNotAllowed : .itemNotExpected, kind: kind.rawValue,
        serial: serial))
  }

  /// Ends the stream of a request of this side whose response has begun to arrive.
  mutating func streamAnswered(_ serial: UInt32, tag: UInt32) throws(Violation) {
    guard let slot = streams.slot(of: serial) else { return }
    try streams.answered(serial, tag: tag, in: slot)
    endStream(serial)
  }

  /// Forgets the stream of an exchange that has ended; an item that waits is withdrawn. Items that
  /// the application has not taken still count for a requester, which can read them.
  mutating func endStream(_ serial: UInt32) {
    guard streams.remove(serial, keepingUnread: settings.role.owns(serial)) else { return }
    _ = outbox.withdraw(.item, serial: serial, encodedAt: nil)
  }
}

// MARK: - Granting credit

extension Connection {
  /// Notes that the application has taken items, with what they cost in all.
  package mutating func tookItems(_ serial: UInt32, cost: Int, at now: LinkInstant) {
    self.now = max(self.now, now)
    guard isOpen, let grant = streams.took(cost, of: serial, at: self.now) else {
      return tookUnread(serial, cost: cost)
    }
    perform(grant, of: serial)
  }

  /// Notes that the application holds all whole items of a stream, and grants the credit that the
  /// peer needs to end the item that it has begun.
  package mutating func lentItems(_ serial: UInt32, at now: LinkInstant) {
    self.now = max(self.now, now)
    if isOpen { perform(streams.lent(serial, at: self.now), of: serial) }
  }

  /// Notes that the application has taken items of an ended request of this side, with what they
  /// cost; `.max` if it will take no more of them.
  package mutating func tookUnread(_ serial: UInt32, cost: Int) {
    streams.tookUnread(serial, cost)
  }

  private mutating func perform(_ grant: StreamTable.Grant, of serial: UInt32) {
    switch grant {
    case .nothing: break
    case .credit(let lump): outbox.encodeCredit(lump, for: serial)
    case .overLimit:
      counters.streamsOverLimit += 1
      report(.stream(.overLimit, serial: serial))
    }
  }
}

// MARK: - Sending items

extension Connection {
  /// Sends an item, or keeps it until there are credit and room. Call it again only when the item
  /// before has been encoded. `bytes` is the item if it is an array already, whose memory is then
  /// shared while it waits.
  package mutating func sendItem<Failure>(
    _ serial: UInt32, count: Int, at now: LinkInstant, sharing bytes: () -> [UInt8]? = { nil },
    _ body: (inout OutputRawSpan) throws(Failure) -> Void
  ) throws(Failure) -> ItemPlacement {
    self.now = max(self.now, now)
    guard isOpen, let slot = streams.slot(of: serial), streams.takesItem(slot) else {
      return .ended
    }
    if streams.affords(count, slot), outbox.takesItem(count, streams.priority(slot)) {
      probeBeforeData()
      try outbox.encodeItem(FrameHead(.item, serial: serial, length: count), body)
      streams.sent(count, slot)
      counters.itemsSent += 1
      return .encoded
    }
    let item: [UInt8]
    if let bytes = bytes() { item = bytes } else { item = try Outbox.copied(count, nil, body) }
    streams.enqueue(item, of: serial, slot)
    counters.itemsSent += 1
    sendPending(serial)
    refill()
    return streams.awaitsPending(serial) ? .waiting : .encoded
  }

  /// Ends this side's items, once the item that waits has been encoded. Only a requester calls it.
  package mutating func endItems(_ serial: UInt32, at now: LinkInstant) {
    self.now = max(self.now, now)
    guard isOpen, streams.endItems(serial) else { return }
    sendPending(serial)
    refill()
  }

  /// Puts the next fragment of the waiting item into the backlog, as far as the credit goes; or
  /// sends the end, if it is due.
  mutating func sendPending(_ serial: UInt32) {
    switch streams.nextPiece(of: serial) {
    case .nothing: break
    case .end: outbox.encode(FrameHead(.end, serial: serial, length: 0))
    case .fragment(let item, let start, let count, let isPart, let priority):
      outbox.enqueue(
        FrameHead(.item, flags: isPart ? .more : [], serial: serial, length: count),
        of: item, from: start, priority: priority)
    }
  }

  /// Notes that the fragment of an item has been encoded.
  mutating func fragmentSent(_ serial: UInt32) {
    guard let progress = streams.fragmentSent(serial) else { return }
    if progress == .whole(isAwaited: true) { report(.stream(.itemSent, serial: serial)) }
    sendPending(serial)
  }
}
