// SPDX-License-Identifier: Apache-2.0

// Items, ends and credit of the peer. Everything that belongs to an exchange that has ended is
// dropped and counted; whatever a running exchange does not allow is a violation.

extension Connection {
  /// Opens the stream of a request of the peer, if its metadata asks for one. Returns false if its
  /// first credit does not fit into the limit of all windows.
  @inline(__always)
  mutating func beginStream(of request: Arrival) throws(Violation) -> Bool {
    guard request.hasMetadata, metadata.last.credit != nil || metadata.last.items,
      agreement.features.contains(.streams)
    else { return true }
    return try openStream(of: request)
  }

  private mutating func openStream(of request: Arrival) throws(Violation) -> Bool {
    if let credit = metadata.last.credit, credit > Wire.mostCredit {
      throw Violation(
        .creditNotAllowed, kind: FrameKind.request.rawValue, serial: request.serial,
        value: UInt64(credit))
    }
    var stream = StreamState(isRequestWhole: true)
    if metadata.last.items {
      guard streams.hasRoom(for: settings.windows.first) else { return false }
      stream.incoming = ItemInflow(
        share: settings.windows.first, window: settings.windows.first,
        largestWindow: settings.windows.largest)
    }
    stream.outgoing = metadata.last.credit.map {
      ItemOutflow(credit: carriage.firstCredit(of: Int($0)), priority: metadata.last.priority)
    }
    streams.insert(stream, for: request.serial)
    return true
  }

  /// Whether there are any streams.
  package var hasStreams: Bool { !streams.isEmpty }

  /// The directions in which a request of the peer opened a stream.
  package func streamShape(of serial: UInt32) -> StreamShape {
    guard !streams.isEmpty, let slot = streams.slot(of: serial) else { return [] }
    let stream = streams[slot]
    var shape: StreamShape = []
    if stream.incoming != nil { shape.insert(.requestItems) }
    if stream.outgoing != nil { shape.insert(.responseItems) }
    return shape
  }

  mutating func acceptItem(
    _ head: FrameHead, _ body: BodySlice
  ) throws(Violation) -> Arrival? {
    let isLast = !head.flags.contains(.more)
    guard let slot = try streamSlot(of: head) else {
      if isLast { counters.lateItems += 1 }
      return nil
    }
    let serial = head.serial
    guard var inflow = streams[slot].incoming else { throw Violation(.itemNotExpected, head) }
    guard !inflow.hasEnded else { throw Violation(.itemAfterEnd, head) }
    let cost = Wire.itemOverhead + head.length
    streams.setHeardPeer(slot)
    if carriage.usesCredit {
      guard cost <= inflow.credit else {
        throw Violation(.creditExceeded, head, value: UInt64(cost))
      }
      inflow.arrived(cost, at: now)
    }
    if isLast, inflow.partial == 0 {
      inflow.completed(cost)
      streams.setIncoming(slot, inflow)
      counters.itemsReceived += 1
      return Arrival(.item, serial: serial, tag: UInt32(clamping: cost), payload: body)
    }
    let size = streams.partialCount(serial) + head.length
    guard size <= settings.maxBody else {
      throw Violation(.lengthOverLimit, head, value: UInt64(size))
    }
    guard isLast else {
      unsafe input.withStorage { storage in
        // The fragment is in the input: it was taken, and nothing was appended since.
        unsafe streams.append(
          UnsafeRawBufferPointer(rebasing: storage[body.start..<body.start + body.count]),
          to: serial, credit: inflow.credit)
      }
      inflow.partial += cost
      streams.setIncoming(slot, inflow)
      grantCredit(serial, slot)
      reportIfStuck(serial, slot)
      return nil
    }
    let whole = inflow.partial + cost
    inflow.partial = 0
    inflow.completed(whole)
    streams.setIncoming(slot, inflow)
    counters.itemsReceived += 1
    unsafe input.withStorage { storage in
      // As above.
      unsafe assembled = streams.takePartial(
        serial,
        joining: UnsafeRawBufferPointer(rebasing: storage[body.start..<body.start + body.count]))
    }
    return Arrival(
      .item, serial: serial, tag: UInt32(clamping: whole),
      payload: BodySlice(start: 0, count: assembled.count, isAssembled: true))
  }

  mutating func acceptEnd(_ head: FrameHead) throws(Violation) -> Arrival? {
    guard let slot = try streamSlot(of: head) else {
      counters.lateEnds += 1
      return nil
    }
    guard var inflow = streams[slot].incoming else { throw Violation(.itemNotExpected, head) }
    guard !inflow.hasEnded else { throw Violation(.itemAfterEnd, head) }
    guard inflow.partial == 0 else { throw Violation(.itemCutOff, head) }
    inflow.hasEnded = true
    streams.setIncoming(slot, inflow)
    return Arrival(.end, serial: head.serial, tag: 0, payload: .empty)
  }

  mutating func acceptCredit(_ head: FrameHead, _ body: BodySlice) throws(Violation) {
    let credit = withBody(body) { bytes in
      // A frame of this kind has four bytes.
      (0..<4).reduce(0) { sum, index in
        sum << 8 | Int(unsafe bytes.unsafeLoad(fromByteOffset: index, as: UInt8.self))
      }
    }
    guard (1...Wire.mostCredit).contains(credit) else {
      throw Violation(.creditNotAllowed, head, value: UInt64(credit))
    }
    guard let slot = try streamSlot(of: head) else {
      counters.lateCredits += 1
      return
    }
    guard var outflow = streams[slot].outgoing else {
      throw Violation(.creditNotAllowed, head, value: UInt64(credit))
    }
    streams.setHeardPeer(slot)
    guard !outflow.hasEnded else {
      counters.lateCredits += 1
      return
    }
    guard outflow.credit + credit <= Wire.mostCredit else {
      throw Violation(.creditOverflow, head, value: UInt64(outflow.credit + credit))
    }
    counters.creditsReceived += 1
    outflow.credit += credit
    streams.setOutgoing(slot, outflow)
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
    // Without a stream, or before its last frame.
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
    let stream = streams[slot]
    let kind = FrameKind.response.rawValue
    guard tag & Wire.refusedBit == 0 || !stream.hasHeardPeer else {
      throw Violation(.refusedAfterItems, kind: kind, serial: serial)
    }
    guard tag & Wire.codeMask != ResponseCode.ok.rawValue || stream.incoming?.partial ?? 0 == 0
    else { throw Violation(.itemCutOff, kind: kind, serial: serial) }
    endStream(serial)
  }
}

// MARK: - Granting credit

extension Connection {
  /// Notes that the application has taken items, with what they cost in all.
  package mutating func tookItems(_ serial: UInt32, cost: Int, at now: LinkInstant) {
    self.now = max(self.now, now)
    guard isOpen, let slot = streams.slot(of: serial), var inflow = streams[slot].incoming
    else { return tookUnread(serial, cost: cost) }
    inflow.untaken -= cost
    precondition(inflow.untaken >= 0, "more items were taken than came")
    guard carriage.usesCredit else {
      // Reading goes on when this is below the window.
      streams.setIncoming(slot, inflow)
      return
    }
    // Half of the limit is left to the first credit of other streams.
    inflow.growIfTooSmall(room: settings.windows.total / 2 - streams.ceiling)
    streams.setIncoming(slot, inflow)
    grantCredit(serial, slot)
  }

  /// Notes that the application holds all whole items of a stream: the peer must be able to end the
  /// item that it has begun.
  package mutating func lentItems(_ serial: UInt32, at now: LinkInstant) {
    self.now = max(self.now, now)
    guard isOpen, let slot = streams.slot(of: serial), var inflow = streams[slot].incoming
    else { return }
    inflow.isLent = true
    streams.setIncoming(slot, inflow)
    grantCredit(serial, slot)
  }

  /// Asks the application for news if the peer cannot go on within an item until that has taken
  /// others, at most once for each item.
  private mutating func reportIfStuck(_ serial: UInt32, _ slot: Int) {
    guard carriage.usesCredit, var inflow = streams[slot].incoming, inflow.isStuck else { return }
    inflow.wasReported = true
    streams.setIncoming(slot, inflow)
    report(.stream(.stuck, serial: serial))
  }

  /// Whether items of an ended request of this side count that the application has not taken.
  package func holdsUnread(_ serial: UInt32) -> Bool { streams.holdsUnread(serial) }

  /// Notes that the application has taken some of them, with what they cost.
  package mutating func tookUnread(_ serial: UInt32, cost: Int) {
    streams.tookUnread(serial, cost)
  }

  /// Notes that the application will take no more of them.
  package mutating func forgetUnread(_ serial: UInt32) { streams.tookUnread(serial, .max) }

  /// Grants credit if it is time for it. If the rest of an item does not fit into the limit of all
  /// windows, the exchange has to end.
  private mutating func grantCredit(_ serial: UInt32, _ slot: Int) {
    guard carriage.usesCredit, var inflow = streams[slot].incoming else { return }
    let isWithinItem = inflow.partial > 0 && inflow.hasNoneWaiting
    var lump = min(inflow.lump, Wire.mostCredit - inflow.credit)
    // One item may exceed the limit, with the headers of its fragments.
    let extra =
      isWithinItem
      ? settings.maxBody + (settings.maxBody / Wire.fragmentLimit + 1) * Wire.itemOverhead : 0
    func fits(_ lump: Int) -> Bool {
      var granted = inflow
      granted.granted(lump, at: now)
      let growth = granted.reserved - inflow.reserved
      // What is reserved for the stream is there, whatever the items of others take.
      return growth <= 0 || streams.hasRoom(for: growth, extra: extra)
    }
    if lump > 0, !fits(lump) {
      // Less will do for now: the window grows back when there is room.
      lump = inflow.hasNoneWaiting ? min(lump, max(0, Wire.leastCredit - inflow.credit)) : 0
      guard lump == 0 || fits(lump) else {
        counters.streamsOverLimit += 1
        report(.stream(.overLimit, serial: serial))
        return
      }
    }
    guard lump > 0 else { return }
    inflow.granted(lump, at: now)
    streams.setIncoming(slot, inflow)
    streams.setSpoken(slot)
    outbox.encode(FrameHead(.credit, serial: serial, length: 4)) { span in
      for shift in [24, 16, 8, 0] { span.append(UInt8(truncatingIfNeeded: lump >> shift)) }
    }
  }
}
