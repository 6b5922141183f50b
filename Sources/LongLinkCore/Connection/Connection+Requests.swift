// SPDX-License-Identifier: Apache-2.0

// The peer's requests, from their arrival to the return of their handlers.

/// Bytes of memory that a peer makes this side hold.
package struct HeldMemory: Equatable, Sendable {
  /// Until the connection ends.
  package var open = 0
  /// Those of them in which nothing is at the moment.
  package var room = 0
  /// Until handlers have returned whose requests were given up.
  package var outlived = 0

  /// Those of the open ones in which something is.
  package var used: Int { open - room }

  package init(open: Int = 0, room: Int = 0, outlived: Int = 0) {
    self.open = open
    self.room = room
    self.outlived = outlived
  }
}

extension Connection {
  /// The peer's requests that are not yet answered.
  package var requestsRunning: Int { peerRequests.count }

  /// Those that were given up, by either side, before their handlers had returned.
  package var requestsOutlived: Int { peerRequests.outlived }

  /// About how many bytes of memory the peer makes this side hold.
  package var held: HeldMemory {
    HeldMemory(
      open: input.capacity + assemblies.bytes + peerRequests.bytes - peerRequests.outlivedBytes
        + outbox.heldBytes + tableBytes + peerRequests.handled * Connection.requestOverhead
        + assemblies.count * Connection.assemblyOverhead,
      room: input.capacity - input.count + outbox.room,
      outlived: peerRequests.outlivedBytes + peerRequests.outlived * Connection.requestOverhead)
  }

  /// What the tables take once they are large: a place in that of requests, with the one in that of
  /// their handlers, and one in that of messages in fragments.
  private var tableBytes: Int {
    let (requests, messages) = (peerRequests.capacity, assemblies.capacity)
    guard requests + messages > 64 else { return 0 }
    return requests * 80 + messages * (MemoryLayout<Assembly>.stride + 4)
  }

  /// Bytes that count against `maxRequestBytes`.
  package var requestBytes: Int {
    assemblies.bytes - assemblies.awaitedBytes + peerRequests.bytes
  }

  /// About what a request takes besides its body: its task, and what is kept of it.
  package static let requestOverhead = 4096

  /// About what a message takes besides its bytes of which not all fragments have come.
  private static let assemblyOverhead = 128
}

// MARK: - Taking and refusing

extension Connection {
  @inline(__always)
  mutating func acceptRequest(_ arrival: Arrival) throws(Violation) -> Arrival? {
    guard !peerRequests.contains(arrival.serial) else {
      throw Violation(.serialInUse, kind: FrameKind.request.rawValue, serial: arrival.serial)
    }
    if let refusal = countRequest(of: arrival.byteCount) {
      refuse(arrival.serial, refusal)
      return nil
    }
    peerRequests.run(arrival.serial, holding: arrival.byteCount)
    return arrival
  }

  /// Why a request is refused before anybody has seen it.
  enum Refusal {
    case draining
    case tooManyRequests
    case tooManyBytes
    case tooLarge
    case stalled
  }

  /// Leaves a request where it is for a turn, if there is no room for it and handlers go on that
  /// were cancelled: most return at once, and a peer that made room by a cancel is not refused.
  mutating func leavesToHandlers(_ head: FrameHead) -> Bool {
    guard head.kind == .request, !handlersHadTurn,
      peerRequests.isFull(at: settings.maxInFlight), !assemblies.contains(head.serial)
    else { return false }
    waitsForHandlers = true
    return true
  }

  /// Tells that handlers have had a turn: what there is no room for now is refused.
  package mutating func handlersHaveHadTurn() {
    waitsForHandlers = false
    handlersHadTurn = true
  }

  /// Tells that everything was taken that was left to be.
  package mutating func handlersTurnEnds() {
    handlersHadTurn = false
  }

  /// Counts a new request and says why it cannot be taken; nil when it can.
  @inline(__always)
  mutating func countRequest(of byteCount: Int) -> Refusal? {
    counters.requestsReceived += 1
    if saidGoAway { return .draining }
    requestsAccepted += 1
    if peerRequests.isFull(at: settings.maxInFlight) { return .tooManyRequests }
    return requestBytes + byteCount > settings.maxRequestBytes ? .tooManyBytes : nil
  }

  /// Answers a request in the framework's own name: no handler was called.
  mutating func refuse(_ serial: UInt32, _ refusal: Refusal) {
    let (code, detail): (ResponseCode, String) =
      switch refusal {
      case .draining: (.draining, "going away")
      case .tooLarge: (.tooLarge, "the body is larger than \(settings.maxBody) bytes")
      case .tooManyRequests: (.overloaded, "more than \(settings.maxInFlight) requests at once")
      case .tooManyBytes:
        (.overloaded, "the requests hold more than \(settings.maxRequestBytes) bytes")
      case .stalled: (.deadlinePassed, "the next fragment has not come in time")
      }
    let tag = code.rawValue | Wire.refusedBit
    guard takesUnread() else { return }
    let body = detail.utf8.prefix(agreement.maxBody)
    let head = messageHead(.response, tag: tag, serial, nil, body.count)
    outbox.encode(head) { span in
      for byte in body { span.append(byte) }
    }
    counters.responsesSent += 1
    counters.refused += 1
    followMarks()
  }
}

// MARK: - Answering

extension Connection {
  /// Lets the response to one of the peer's requests be as urgent as that was.
  package mutating func setPriority(_ priority: UInt32, of serial: UInt32) {
    peerRequests.setPriority(priority, of: serial)
  }

  /// Answers a request of the peer, whose handler has returned unless `outlives` said otherwise.
  ///
  /// False when no answer is owed any more, since the request was cancelled or its connection has
  /// ended: `handlerReturned` is to be told then.
  @discardableResult
  package mutating func respond<Body: BodyEncodable>(
    _ serial: UInt32, code: ResponseCode, count: Int, _ body: Body
  ) throws(BodyError) -> Bool {
    try respond(serial, code, isRefused: false, nil, count) { (span) throws(BodyError) in
      try body.encode(into: &span)
    }
  }

  /// Answers a request of the peer with bytes, in the same way.
  @discardableResult
  package mutating func respond(
    _ serial: UInt32,
    code: ResponseCode,
    isRefused: Bool = false,
    ownCode: UInt32? = nil,
    metadata: MetadataBlock? = nil,
    _ body: [UInt8]
  ) -> Bool {
    respond(serial, code, isRefused: isRefused, ownCode: ownCode, metadata, body.count) { span in
      body.encode(into: &span)
    }
  }

  @inline(__always)
  private mutating func respond<Failure>(
    _ serial: UInt32,
    _ code: ResponseCode,
    isRefused: Bool,
    ownCode: UInt32? = nil,
    _ metadata: MetadataBlock?,
    _ count: Int,
    _ body: (inout OutputRawSpan) throws(Failure) -> Void
  ) throws(Failure) -> Bool {
    guard isLive, let request = peerRequests[serial], request.state == .running else {
      counters.droppedResponses += 1
      return false
    }
    guard takesUnread() else {
      counters.droppedResponses += 1
      return false
    }
    let tag = code.rawValue | (isRefused ? Wire.refusedBit : 0)
    var head = messageHead(.response, tag: tag, serial, metadata, count)
    if let dialect = framing.dialect {
      guard dialect.prepare(&head, code, ownCode) else {
        // The caller's deadline ends its wait: there is no way to tell it.
        peerRequests.answered(serial)
        framing.answered(serial)
        counters.droppedResponses += 1
        return true
      }
    }
    let place: Outbox.Placement
    if isRefused, !framing.hasControlFrames {
      // It is short, and is not to count among the requests that run until there is room for it.
      place = .encoded(at: try outbox.encode(head, metadata: metadata, body))
    } else {
      place = try outbox.append(
        head, metadata: metadata, priority: request.priority, body)
    }
    switch place {
    case .encoded:
      peerRequests.answered(serial)
    case .queued:
      peerRequests.beginAnswer(serial)
      refill()
    }
    framing.answered(serial)
    counters.responsesSent += 1
    if isRefused { counters.refused += 1 }
    followMarks()
    return true
  }
}

// MARK: - Ends without an answer

extension Connection {
  mutating func acceptCancel(_ serial: UInt32) {
    counters.cancelsReceived += 1
    cancelled(serial)
  }

  /// The peer wants no answer to a request.
  mutating func cancelled(_ serial: UInt32) {
    let wasDiscarding = dropAssembly(serial)
    guard let request = peerRequests.cancel(serial) else {
      // A cancel that crossed the response, or came twice.
      if !wasDiscarding { counters.droppedUnknownSerials += 1 }
      return
    }
    framing.answered(serial)
    switch request.state {
    case .assembling:
      break
    case .running:
      tell(.cancel(serial: serial))
    case .responding:
      _ = outbox.withdraw(.response, serial: serial, encodedAt: nil)
      followMarks()
    }
  }

  /// Tells that a request is answered before its handler has returned, or was given up by this
  /// side: it counts as one of the peer's until `handlerReturned` is told.
  package mutating func outlives(_ serial: UInt32) {
    peerRequests.setOutlived(serial)
  }

  /// Tells that the handler of a request has returned to which no answer was owed any more.
  package mutating func handlerReturned(bytes: Int) {
    peerRequests.handlerReturned(bytes: bytes)
  }
}
