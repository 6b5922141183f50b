// SPDX-License-Identifier: Apache-2.0

extension Connection {
  /// Sends a request. The connection must be open and the body within the peer's limit.
  package mutating func request(
    _ serial: UInt32,
    type: MessageType,
    metadata: MetadataBlock?,
    priority: UInt32 = 0,
    count: Int,
    stream: StreamTerms? = nil,
    at now: LinkInstant,
    _ body: (inout OutputRawSpan) throws(BodyError) -> Void
  ) throws(BodyError) -> OutputPosition {
    precondition(isOpen && owns(serial))
    self.now = max(self.now, now)
    probeBeforeData()
    let head = FrameHead(
      message: .request, tag: type.rawValue, serial: serial, metadata, count: count)
    let place = try outbox.append(head, metadata: metadata, priority: priority, body)
    carriage.sends(serial)
    framing.asked(serial, type)
    if let stream {
      streams.open(serial, stream, credit: agreement.streamCredit, priority: priority)
    }
    switch place {
    case .encoded(let begin):
      counters.requestsSent += 1
      let ordinal = ordinals.next()
      if stream != nil, let slot = streams.slot(of: serial) { streams.setRequestWhole(slot) }
      updateWaterMarks()
      return OutputPosition(begin: begin, ordinal: ordinal)
    case .queued:
      refill()
      updateWaterMarks()
      return .keptBack
    }
  }

  /// Sends a one-way message.
  package mutating func push<Failure>(
    _ type: MessageType,
    metadata: MetadataBlock? = nil,
    priority: UInt32 = 0,
    count: Int,
    at now: LinkInstant,
    _ body: (inout OutputRawSpan) throws(Failure) -> Void
  ) throws(Failure) {
    precondition(isOpen)
    self.now = max(self.now, now)
    probeBeforeData()
    guard takesUnread() else { return }
    let head = FrameHead(
      message: .push, tag: type.rawValue, serial: Wire.plainPushSerial, metadata, count: count)
    let place = try outbox.append(head, metadata: metadata, priority: priority, body)
    if case .queued = place { refill() }
    counters.pushesSent += 1
    updateWaterMarks()
  }

  /// Sends a one-way message whose frame was encoded once for many connections.
  package mutating func push(_ type: MessageType, _ body: [UInt8], encoded frame: [UInt8]) {
    if outbox.takesWhole(body.count) {
      guard takesUnread() else { return }
      outbox.append(encoded: frame)
      counters.pushesSent += 1
      updateWaterMarks()
    } else {
      push(type, count: body.count, at: now) { span in body.encode(into: &span) }
    }
  }

  /// Withdraws a request, or else sends a cancel if `notifying` is true, or if the peer would
  /// otherwise wait forever for the rest of the request or for credit.
  ///
  /// Returns true if no byte of the request was written.
  package mutating func cancel(
    _ serial: UInt32, _ placement: OutputPosition, notifying: Bool
  ) -> Bool {
    guard isOpen else { return false }
    carriage.gaveUp()
    abandonResponse(serial)
    let isStream = !streams.isEmpty && streams.slot(of: serial) != nil
    endStream(serial)
    switch outbox.withdraw(
      .request, serial: serial, encodedAt: placement.begin, takesFollowing: isStream)
    {
    case .unsent:
      framing.withdrew(serial)
      if placement.begin != nil { ordinals.withdraw(placement.ordinal) }
      // Its room is free for others, and perhaps nothing waits for the peer any more.
      if outbox.holdsBack { refill() }
      if outbox.encodedBytes == 0 { timers.clear(.writing) }
      updateWaterMarks()
      return true
    case .partial:
      // Without a cancel the peer would wait forever for the other fragments.
      encodeCancel(serial)
      updateWaterMarks()
    case .tooLate:
      if let dialect = framing.dialect {
        cancel(serial, in: dialect, notifying: notifying)
      } else if notifying || isStream {
        encodeCancel(serial)
      }
    }
    return false
  }

  mutating func encodeCancel(_ serial: UInt32, of type: MessageType = 0) {
    guard carriage.hasCancels else { return }
    outbox.encode(FrameHead(.cancel, serial: serial, about: type.rawValue, length: 0))
    counters.cancelsSent += 1
  }

  /// Sends a message about the connection itself.
  mutating func send(_ kind: FrameKind, tag: UInt32 = 0, _ message: some ControlBody) {
    outbox.encode(kind, tag: tag, message)
  }

  @inline(__always)
  private func owns(_ serial: UInt32) -> Bool { framing.owns(serial, as: settings.role) }

  /// Whether another message can be queued. Closes the connection if the peer left too much unread.
  @inline(__always)
  mutating func takesUnread() -> Bool {
    guard outbox.totalBytes > settings.maxUnread else { return true }
    close(.unreadOutput)
    return false
  }

  /// Updates the water marks, and tells when senders can continue.
  @inline(__always)
  mutating func updateWaterMarks() {
    if marks.mayCross(outbox.totalBytes, settings.waterMarks) { crossMarks() }
  }

  private mutating func crossMarks() {
    let large = outbox.largeBytes
    let change = marks.update(
      small: outbox.totalBytes - large, large: large, settings.waterMarks)
    counters.highWaterEvents += change.exceeded
    if change.hasFallen, isOpen { report(.resumeSending) }
  }

  /// Encodes queued messages as room allows, and reports requests that begin or finish.
  mutating func refill() {
    // What the events of one round queue is encoded in the next.
    var events: [Outbox.Event] = []
    repeat {
      events.removeAll(keepingCapacity: true)
      outbox.refill { events.append($0) }
      for event in events { handle(event) }
    } while !events.isEmpty
  }

  private mutating func handle(_ event: Outbox.Event) {
    switch event {
    case .began(.request, let serial, let begin):
      counters.requestsSent += 1
      report(.request(.began(serial: serial, at: begin, ordinal: ordinals.next())))
    case .finished(.request, let serial):
      report(.request(.finished(serial: serial)))
      if let slot = streams.slot(of: serial) {
        streams.setRequestWhole(slot)
        sendPending(serial)
      }
    case .finished(.response, let serial):
      inbound.sent(serial)
    case .finished(.item, let serial):
      fragmentSent(serial)
    case .began, .finished:
      break
    }
  }
}

extension Connection {
  /// Whether the driver should try to write.
  package var wantsToWrite: Bool {
    if outbox.encodedBytes > 0 { return true }
    if case .closing = phase { return !goodbyes.hasShutDown }
    return false
  }

  /// Notes that this number of bytes of the outbox's chunk was written.
  package mutating func wrote(_ count: Int, at now: LinkInstant) {
    self.now = max(self.now, now)
    if count > 0 {
      outbox.wrote(count)
      counters.bytesSent += UInt64(count)
      liveness.wrote(at: self.now)
    }
    guard !isClosed else { return }
    if count > 0, outbox.holdsBack { refill() }
    updateWaterMarks()
    if outbox.encodedBytes == 0 {
      timers.clear(.writing)
    } else if count > 0 || timers[.writing] == .distantFuture {
      liveness.watchWriting(at: self.now)
      timers[.writing] = self.now + writingTimeout / 4
    }
    if carriage.isShort, outbox.isEmpty, isOpen { wroteAll() }
    if case .closing(let reason) = phase, outbox.isEmpty, goodbyes.shutDown() {
      effects.append(.shutDownWriting)
      if carriage.peerHasEnded { close(reason) }
    }
  }

  /// Ends this side's bytes behind the last frame of a short link.
  private mutating func wroteAll() {
    switch carriage.end(sentItems: carriage.serial.map { streams.hasSentAll($0) } ?? true) {
    case .nothing: break
    case .link: beginClosing(.closedHere, saying: nil)
    case .writing:
      if goodbyes.shutDown() { effects.append(.shutDownWriting) }
    }
  }

  /// Closes the connection if the peer's system has acknowledged no byte for too long.
  mutating func writingElapsed(unacknowledged: Int) {
    let limit = liveness.writingLimit(
      acknowledged: counters.acknowledged(besides: unacknowledged), timeout: writingTimeout,
      at: now)
    if now >= limit {
      close(.stalledPeer)
    } else {
      timers[.writing] = min(limit, now + writingTimeout / 4)
    }
  }
}
