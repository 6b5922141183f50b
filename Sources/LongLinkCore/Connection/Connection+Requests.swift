// SPDX-License-Identifier: Apache-2.0

// The peer's requests, from their arrival to the return of their handlers.

extension Connection {
  /// The approximate memory that the peer makes this side hold.
  package var held: HeldMemory { HeldMemory(of: self) }

  /// The number of bytes that count towards `maxRequestBytes`.
  package var requestBytes: Int {
    assemblies.bytes - assemblies.awaitedBytes + inbound.bytes
  }

  /// Whether a request of either side carries items. To ask the table itself from another module
  /// would copy it.
  package var hasStreams: Bool { !streams.isEmpty }
}

// MARK: - Accepting and refusing

extension Connection {
  @inline(__always)
  mutating func acceptRequest(_ arrival: Arrival) throws(Violation) -> Arrival? {
    guard !inbound.contains(arrival.serial) else {
      throw Violation(.serialInUse, kind: FrameKind.request.rawValue, serial: arrival.serial)
    }
    if let refusal = countRequest(of: arrival.byteCount) {
      guard refusal.code == .overloaded, try isOnce(arrival) else {
        refuse(arrival.serial, tag: arrival.tag, refusal)
        return nil
      }
    }
    try inbox.readMetadata(of: arrival)
    if let refusal = try refusal(of: arrival) {
      refuse(arrival.serial, tag: arrival.tag, refusal)
      return nil
    }
    inbound.run(arrival.serial, holding: arrival.byteCount)
    return arrival
  }

  /// The identity of the request that is being delivered.
  package func id(of request: Arrival) -> InboundID {
    InboundID(serial: request.serial, number: inbound.newest)
  }

  /// Defers a request by one turn if there is no room for it while cancelled handlers still run.
  /// Most of them return at once, so that a peer which made room by a cancel is not refused.
  mutating func leavesToHandlers(_ head: FrameHead) -> Bool {
    head.kind == .request && inbound.isFull(at: settings.maxInFlight)
      && !assemblies.contains(head.serial) && readHold.awaitsHandlers()
  }

  /// Counts a new request, and returns why it must be refused; nil if it can be accepted.
  @inline(__always)
  mutating func countRequest(of byteCount: Int) -> Refusal? {
    counters.requestsReceived += 1
    guard goodbyes.acceptRequest() else { return .draining }
    if carriage.isShort, carriage.refusesAll { return .missingFeature }
    if inbound.isFull(at: settings.maxInFlight) { return .tooManyRequests }
    return requestBytes + byteCount > settings.maxRequestBytes ? .tooManyBytes : nil
  }

  /// Refuses a request without calling a handler.
  mutating func refuse(_ serial: UInt32, tag type: UInt32, _ refusal: Refusal) {
    guard takesUnread() else { return }
    outbox.encodeRefusal(
      of: serial, refusal.code, refusal.detail(settings), most: agreement.maxBody)
    if carriage.isShort { carriage.answered() }
    counters.responsesSent += 1
    counters.refused += 1
    tellRefusal(type, serial, refusal)
    updateWaterMarks()
  }

  /// Tells the owner that a request was refused, if the owner has asked for that.
  mutating func tellRefusal(_ type: UInt32, _ serial: UInt32, _ refusal: Refusal) {
    guard settings.reportsRefusals else { return }
    report(.observed(.refused(type: type, serial: serial, refusal)))
  }
}

// MARK: - Responding

extension Connection {
  /// Responds to a request of the peer, the handler of which has returned.
  ///
  /// Returns false if none is sent: the request was cancelled, the connection has ended, or the
  /// dialect cannot express the response.
  @discardableResult
  package mutating func respond<Body: BodyEncodable>(
    _ id: InboundID, code: ResponseCode, count: Int, _ body: Body
  ) throws(BodyError) -> Bool {
    try respond(id, code, .answered, isRefused: false, nil, count) { (span) throws(BodyError) in
      try body.encode(into: &span)
    }
  }

  /// Responds to a request of the peer with bytes, in the same way.
  ///
  /// With `isInterrupting`, it responds in place of the handler, which still runs: the request
  /// counts until `handlerReturned`. Such a response is encoded at once if it needs no fragments,
  /// so that the end of the connection does not drop it.
  @discardableResult
  package mutating func respond(
    _ id: InboundID,
    code: ResponseCode,
    isRefused: Bool = false,
    isInterrupting: Bool = false,
    ownCode: UInt32? = nil,
    metadata: MetadataBlock? = nil,
    _ body: [UInt8]
  ) -> Bool {
    respond(
      id, code, isInterrupting ? .interrupted : isRefused ? .refused : .answered,
      isRefused: isRefused, isUrgent: isInterrupting && body.count <= Wire.fragmentLimit,
      ownCode: ownCode, metadata, body.count
    ) { span in
      body.encode(into: &span)
    }
  }

  @inline(__always)
  private mutating func respond<Failure>(
    _ id: InboundID,
    _ code: ResponseCode,
    _ ending: InboundEnding,
    isRefused: Bool,
    isUrgent: Bool = false,
    ownCode: UInt32? = nil,
    _ metadata: MetadataBlock?,
    _ count: Int,
    _ body: (inout OutputRawSpan) throws(Failure) -> Void
  ) throws(Failure) -> Bool {
    let serial = id.serial
    guard isLive, let slot = inbound.running(id), takesUnread() else {
      counters.droppedResponses += 1
      if ending != .interrupted { inbound.handlerReturned(from: id) }
      return false
    }
    // Credit is granted for the rest of a large item before anything reads the items.
    let isRefused = isRefused && !streams.hasSpoken(serial)
    let tag = code.rawValue | (isRefused ? Wire.refusedBit : 0)
    var head = FrameHead(message: .response, tag: tag, serial: serial, metadata, count: count)
    if let dialect = framing.dialect {
      guard dialect.prepare(&head, code, ownCode) else {
        // The dialect cannot express the response: the caller waits until its deadline.
        inbound.conclude(at: slot, with: ending)
        framing.answered(serial)
        counters.droppedResponses += 1
        return false
      }
    }
    if !streams.isEmpty {
      precondition(
        code != .ok || streams.pending(serial) == nil, "a response with code 200 within an item")
      endStream(serial)
    }
    let place: Outbox.Placement
    if isUrgent || isRefused && !framing.isNative {
      // A refusal is short, and should not count as a running request while it waits for room.
      place = .encoded(at: try outbox.encode(head, metadata: metadata, body))
    } else {
      place = try outbox.append(
        head, metadata: metadata, priority: inbound.priority(at: slot), body)
    }
    switch place {
    case .encoded:
      inbound.conclude(at: slot, with: ending)
    case .queued:
      inbound.respond(at: slot, with: ending)
      refill()
    }
    framing.answered(serial)
    if carriage.isShort { carriage.answered() }
    counters.responsesSent += 1
    if isRefused { counters.refused += 1 }
    updateWaterMarks()
    return true
  }
}

// MARK: - Ends without a response

extension Connection {
  mutating func acceptCancel(_ serial: UInt32) {
    if takesCancel() { cancelled(serial) }
  }

  /// Ends a request that the peer cancelled.
  mutating func cancelled(_ serial: UInt32) {
    let wasDiscarding = removeAssembly(serial)?.isDiscarding ?? false
    guard let request = inbound.conclude(serial, with: .cancelled) else {
      // A cancel that crossed the response, or a repeated one.
      if !wasDiscarding { counters.droppedUnknownSerials += 1 }
      return
    }
    framing.answered(serial)
    endStream(serial)
    switch request.state {
    case .assembling where !goodbyes.isSaid: break
    // A drain may wait for a request that has not reached a handler: its end must be reported.
    case .assembling, .running:
      report(.cancel(InboundID(serial: serial, number: request.number)))
    case .responding:
      _ = outbox.withdraw(.response, serial: serial, encodedAt: nil)
      updateWaterMarks()
    }
  }
}
