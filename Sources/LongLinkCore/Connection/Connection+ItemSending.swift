// SPDX-License-Identifier: Apache-2.0

/// The directions in which an exchange carries items.
public struct StreamShape: OptionSet, Hashable, Sendable {
  /// The bits.
  public let rawValue: UInt8

  /// Makes a shape from its bits.
  public init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// Items of the requester follow its request.
  public static let requestItems = StreamShape(rawValue: 1)
  /// Items of the responder precede its response.
  public static let responseItems = StreamShape(rawValue: 2)
}

/// What a request of this side asks for, if it carries items.
package struct StreamTerms: Equatable, Sendable {
  /// The first credit for items of the responder, in bytes; nil for none.
  package var credit: Int?
  /// The size up to which that window grows; nil for that of the settings.
  package var largestWindow: Int?
  /// Whether items of this side follow.
  package var sendsItems: Bool
  /// Whether items go in both directions.
  package var isTwoWay: Bool { credit != nil && sendsItems }

  package init(credit: Int?, largestWindow: Int? = nil, sendsItems: Bool) {
    self.credit = credit
    self.largestWindow = largestWindow
    self.sendsItems = sendsItems
  }
}

extension Connection {
  /// What became of an item that was to be sent.
  package enum ItemPlacement: Equatable, Sendable {
    /// It has been encoded to its end: another one can be sent.
    case encoded
    /// It waits for credit or room. `itemSent` follows, unless the exchange ends before.
    case waiting
    /// The exchange, or its items, have ended: nothing will be sent.
    case ended
  }

  /// Opens the stream of a request of this side that is about to be sent.
  mutating func openStream(_ serial: UInt32, _ terms: StreamTerms, priority: UInt32) {
    var stream = StreamState(isRequestWhole: false)
    if let credit = terms.credit {
      stream.incoming = ItemInflow(
        share: credit, window: credit,
        largestWindow: terms.largestWindow ?? settings.windows.largest)
    }
    if terms.sendsItems {
      stream.outgoing = ItemOutflow(
        credit: carriage.firstCredit(of: agreement.streamCredit), priority: priority)
    }
    streams.insert(stream, for: serial)
  }

  /// Whether the limit of all windows has room for another stream's first credit.
  package func hasWindow(of credit: Int) -> Bool { streams.hasRoom(for: credit) }

  /// Sends an item, or keeps it until there are credit and room. Call it again only when the item
  /// before has been encoded. `bytes` is the item if it is an array already, whose memory is then
  /// shared while it waits.
  package mutating func sendItem<Failure>(
    _ serial: UInt32, count: Int, at now: LinkInstant, sharing bytes: () -> [UInt8]? = { nil },
    _ body: (inout OutputRawSpan) throws(Failure) -> Void
  ) throws(Failure) -> ItemPlacement {
    self.now = max(self.now, now)
    guard isOpen, let slot = streams.slot(of: serial), var outflow = streams[slot].outgoing,
      !outflow.hasEnded, !outflow.endsNext
    else { return .ended }
    precondition(!outflow.isPending, "an item of this stream waits")
    let cost = Wire.itemOverhead + count
    if streams[slot].isRequestWhole, count <= Wire.fragmentLimit, cost <= outflow.credit,
      outbox.takesItem(count, outflow.priority)
    {
      probeBeforeData()
      try outbox.encodeItem(FrameHead(.item, serial: serial, length: count), body)
      outflow.credit -= cost
      streams.setOutgoing(slot, outflow)
      streams.setSpoken(slot)
      counters.itemsSent += 1
      return .encoded
    }
    let item: [UInt8]
    if let bytes = bytes() { item = bytes } else { item = try copied(count, body) }
    outflow.isPending = true
    streams.setOutgoing(slot, outflow)
    streams.setSpoken(slot)
    streams.setPending(PendingItem(body: item), serial)
    counters.itemsSent += 1
    sendPending(serial)
    refill()
    guard var item = streams.pending(serial) else { return .encoded }
    item.isAwaited = true
    streams.setPending(item, serial)
    return .waiting
  }

  private func copied<Failure>(
    _ count: Int, _ body: (inout OutputRawSpan) throws(Failure) -> Void
  ) throws(Failure) -> [UInt8] {
    try [UInt8](capacity: count) { (span) throws(Failure) in
      try unsafe span.withUnsafeMutableBufferPointer { (buffer, initialized) throws(Failure) in
        // The array's free memory, which is filled before this returns.
        try unsafe Outbox.write(nil, body, into: UnsafeMutableRawBufferPointer(buffer))
        initialized = count
      }
    }
  }

  /// Ends this side's items, once the item that waits has been encoded. Only a requester calls it.
  package mutating func endItems(_ serial: UInt32, at now: LinkInstant) {
    self.now = max(self.now, now)
    guard isOpen, let slot = streams.slot(of: serial), var outflow = streams[slot].outgoing,
      !outflow.endsNext
    else { return }
    outflow.endsNext = true
    streams.setOutgoing(slot, outflow)
    sendPending(serial)
    refill()
  }

  /// Puts the next fragment of the waiting item into the backlog, as far as the credit goes; or
  /// sends the end, if it is due.
  mutating func sendPending(_ serial: UInt32) {
    guard let slot = streams.slot(of: serial), streams[slot].isRequestWhole,
      var outflow = streams[slot].outgoing, !outflow.hasEnded
    else { return }
    guard outflow.isPending else {
      guard outflow.endsNext else { return }
      outflow.hasEnded = true
      streams.setOutgoing(slot, outflow)
      outbox.encode(FrameHead(.end, serial: serial, length: 0))
      return
    }
    guard var item = streams.pending(serial), item.queued == nil else { return }
    let rest = item.body.count - item.sent
    let affordable = min(outflow.credit - Wire.itemOverhead, Wire.fragmentLimit)
    guard affordable >= rest || outflow.credit >= Wire.leastCredit else { return }
    let size = min(rest, affordable)
    item.queued = size
    streams.setPending(item, serial)
    outflow.credit -= Wire.itemOverhead + size
    streams.setOutgoing(slot, outflow)
    outbox.enqueue(
      FrameHead(.item, flags: size < rest ? .more : [], serial: serial, length: size),
      of: item.body, from: item.sent, priority: outflow.priority)
  }

  /// Notes that the fragment of an item has been encoded.
  mutating func fragmentSent(_ serial: UInt32) {
    guard var item = streams.pending(serial), let size = item.queued,
      let slot = streams.slot(of: serial), var outflow = streams[slot].outgoing
    else { return }
    item.sent += size
    item.queued = nil
    if item.sent == item.body.count {
      streams.removePending(serial)
      outflow.isPending = false
      streams.setOutgoing(slot, outflow)
      if item.isAwaited { report(.stream(.itemSent, serial: serial)) }
    } else {
      streams.setPending(item, serial)
    }
    sendPending(serial)
  }

  /// Forgets the stream of an exchange that has ended; an item that waits is withdrawn. Items that
  /// the application has not taken still count for a requester, which can read them.
  mutating func endStream(_ serial: UInt32) {
    guard !streams.isEmpty,
      let stream = streams.remove(serial, keepingUnread: settings.role.owns(serial)),
      stream.outgoing?.isPending == true
    else { return }
    _ = outbox.withdraw(.item, serial: serial, encodedAt: nil)
  }
}
