// SPDX-License-Identifier: Apache-2.0

extension Connection {
  /// Notes that bytes have been appended to `input`.
  package mutating func received(_ count: Int, at now: LinkInstant) {
    self.now = max(self.now, now)
    guard count > 0 else { return }
    counters.bytesReceived += UInt64(count)
    inbox.frame.recordEnds()
    if let silence = liveness.read(at: self.now) { endSuspicion(after: silence) }
  }

  /// Notes that bytes of a record of the security have come that is not complete.
  ///
  /// They show that the peer lives, for as long as a frame may take: the length of a record may be
  /// damaged, and then none would ever be complete.
  package mutating func receivedPart(at now: LinkInstant) {
    self.now = max(self.now, now)
    let began = inbox.frame.recordGrows(at: self.now)
    guard isOpen, self.now - began < settings.frameTimeout else { return }
    if let silence = liveness.read(at: self.now) { endSuspicion(after: silence) }
  }

  /// Notes that reading resumes after this side had suspended it.
  package mutating func resumedReading(at now: LinkInstant) {
    self.now = max(self.now, now)
    liveness.heard(at: self.now)
    readHold.resume(at: self.now)
    inbox.frame.recordEnds()
    guard isOpen else { return inbox.frame.stop() }
    timers[.heartbeat] = heartbeatDue
    if inbox.frame.hasBegun { timers[.frame] = self.now + settings.frameTimeout }
  }

  /// Notes that the peer has ended its side of the stream. `isCutOff` states that the stream is
  /// secured and that anyone on the path can have ended it.
  package mutating func ended(at now: LinkInstant, isCutOff: Bool = false) {
    self.now = max(self.now, now)
    if let reason = phase.endReason { return close(reason) }
    if carriage.peerEnds(isWhole: hasWholeRequest) { return }
    guard inbox.input.isEmpty || framing.isLost else {
      return close(isCutOff ? .securityFailed(.cutOff) : .violation(Violation(.truncatedFrame)))
    }
    close(isLeaving ? .closedHere : goodbyes.reasonOfPeer ?? carriage.endWithoutReason)
  }

  /// Whether the request of a short link has arrived completely, with its items.
  private var hasWholeRequest: Bool {
    guard inbox.input.isEmpty, let serial = carriage.serial else { return false }
    return !assemblies.contains(serial) && streams.hasReceivedAll(serial)
  }

  /// Returns the peer's next message; nil if there is none, or if an effect precedes it.
  ///
  /// The caller ends each request with `respond`, and passes each response to its waiting request.
  package mutating func nextMessage() -> Arrival? {
    if effects.isEmpty { inbox.messageEnds() }
    while effects.isEmpty, isReceiving, !holdsReading, !readHold.waitsForHandlers {
      switch nextFrame() {
      case .none:
        discardIfClosing()
        return nil
      case .taken:
        continue
      case .message(let arrival):
        if effects.isEmpty { return arrival }
        // The effects of this frame precede its message.
        effects.append(.message(arrival))
      }
    }
    if !isReceiving { discardIfClosing() }
    return nil
  }

  /// Discards the input of a closing connection, which reads only to reach the peer's end of
  /// stream.
  private mutating func discardIfClosing() {
    if case .closing = phase { inbox.input.removeAll() }
  }

  /// Returns the next effect; nil if there is none.
  package mutating func nextEffect() -> Effect? { effects.popFirst() }

  /// Whether there are effects.
  package var hasEffects: Bool { !effects.isEmpty }

  mutating func report(_ news: LinkNews) {
    effects.append(.report(news))
  }

  @inline(__always)
  private mutating func nextFrame() -> FrameStep {
    if let dialect = framing.dialect { return nextFrame(in: dialect) }
    guard inbox.hasHead else {
      trackIncompleteFrame()
      return .none
    }
    do throws(Violation) {
      let head = try inbox.head()
      try validate(head)
      guard inbox.hasWhole(head) else {
        trackIncompleteFrame()
        return .none
      }
      guard inbox.isIntact(head) else { throw Violation(.checksumMismatch, head) }
      if !isOpen, settings.identifies, head.kind != .hello {
        identify(Greeting())
        return .none
      }
      if inbound.outlived > 0, leavesToHandlers(head) { return .none }
      let body = inbox.take(head)
      counters.framesReceived += 1
      return try accept(head, body)
    } catch {
      if !endsAsSecurePeer() { violate(error) }
      return .none
    }
  }

  /// Closes the connection if the peer's first bytes are a record of TLS, which no kind of frame
  /// looks like: a client's handshake, or a server's alert.
  private mutating func endsAsSecurePeer() -> Bool {
    guard phase == .fresh, counters.framesReceived == 0,
      inbox.beginsWithTLS(of: settings.role.peer)
    else { return false }
    let notice = notice(.malformed, "this server does not speak TLS")
    beginClosing(.securityFailed(.securePeer), saying: settings.role == .server ? notice : nil)
    return true
  }

  /// Starts the frame timer if the input contains part of a frame, and stops it if it is empty.
  mutating func trackIncompleteFrame() {
    guard !inbox.input.isEmpty else { return stopFrame() }
    if phase == .fresh, framing.dialect == nil, endsAsSecurePeer() { return }
    if inbox.frame.begin() { timers[.frame] = now + settings.frameTimeout }
  }

  /// Stops the frame timer, because no incomplete frame is in the input, or none is timed.
  mutating func stopFrame() {
    inbox.frame.stop()
    timers.clear(.frame)
  }

  /// Checks a header before its body has arrived.
  @inline(__always)
  private func validate(_ head: FrameHead) throws(Violation) {
    if carriage.isShort {
      let isCollecting = assemblies.contains(head.serial)
      try carriage.validate(head, isOpen: isOpen, isCollecting: isCollecting)
    }
    // A client must not make a server hold much before the connection is open.
    if !isOpen, settings.role == .server {
      try FrameRule.validateLength(head, most: Wire.controlLimit)
    }
    try FrameRule.validate(
      head, from: settings.role.peer, agreement.features, most: settings.maxBody)
  }

  /// Processes a complete, undamaged frame.
  @inline(__always)
  private mutating func accept(
    _ head: FrameHead, _ body: BodySlice
  ) throws(Violation) -> FrameStep {
    // A client whose first frame is not a hello skips the handshake.
    if !isOpen, settings.role == .server, head.kind != .hello { open() }
    if carriage.isShort {
      carriage.received(head)
      if head.kind == .request { timers.clear(.handshake) }
    }
    switch head.kind {
    case .request, .response, .push:
      if head.flags.contains(.more) || !assemblies.isEmpty {
        return FrameStep(try acceptFragment(head, body))
      }
      return FrameStep(try acceptMessage(head, body))
    case .item:
      return FrameStep(try acceptItem(head, body))
    case .end:
      return FrameStep(try acceptEnd(head))
    case .cancel, .ping, .pong, .hello, .welcome, .goaway, .ignorable, .credit, .renewal:
      try acceptControl(head, body)
      return .taken
    }
  }

  private mutating func acceptControl(_ head: FrameHead, _ body: BodySlice) throws(Violation) {
    switch head.kind {
    case .cancel:
      acceptCancel(head.serial)
    case .ping:
      try acceptPing(body)
    case .pong:
      let id = inbox.number(body)
      acceptPong { $0 == id }
    case .hello:
      try acceptHello(head, body)
    case .welcome:
      try acceptWelcome(head, body)
    case .goaway:
      received(goaway: try inbox.decode(body, of: head))
    case .ignorable:
      counters.droppedIgnorable += 1
    case .credit:
      try acceptCredit(head, body)
    case .renewal:
      try acceptRenewal(head, body)
    case .request, .response, .push, .item, .end:
      throw Violation(.kindNotAgreed, head)
    }
  }

  /// Processes an unfragmented message.
  @inline(__always)
  mutating func acceptMessage(
    _ head: FrameHead, _ body: BodySlice
  ) throws(Violation) -> Arrival? {
    let arrival = try inbox.arrival(head, body)
    return head.kind == .request ? try acceptRequest(arrival) : try acceptAnswer(arrival)
  }

  /// Processes a complete response or push.
  @inline(__always)
  mutating func acceptAnswer(_ arrival: Arrival) throws(Violation) -> Arrival {
    try inbox.readMetadata(of: arrival)
    if arrival.hasMetadata, inbox.metadata.last.replayed { try agreement.validateReplay(arrival) }
    if !streams.isEmpty, arrival.kind == .response {
      try streamAnswered(arrival.serial, tag: arrival.tag)
    }
    return deliver(arrival)
  }

  @inline(__always)
  mutating func deliver(_ arrival: Arrival) -> Arrival {
    if arrival.kind == .push {
      counters.pushesReceived += 1
      return arrival
    }
    counters.responsesReceived += 1
    if outbox.holdsBack,
      outbox.withdraw(.request, serial: arrival.serial, encodedAt: nil) == .partial
    {
      // The response arrived before the request was sent completely: cancel the rest.
      encodeCancel(arrival.serial)
    }
    updateWaterMarks()
    return arrival
  }
}
