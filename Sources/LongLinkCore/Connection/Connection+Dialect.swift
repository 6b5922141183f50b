// SPDX-License-Identifier: Apache-2.0

// The differences in a dialect, which has no handshake and no goaway.

// MARK: - Receiving

extension Connection {
  /// Processes one frame of a dialect, like `nextFrame`.
  mutating func nextFrame(in dialect: DialectState) -> FrameStep {
    let (step, position) = inbox.next(in: dialect)
    switch step {
    case .needMore, .skipped:
      trackIncompleteFrame()
      // While the decoder searches for the next packet, no frame has begun.
      if dialect.decoder.isLost { stopFrame() }
      return .none
    case .damaged(_, let violation):
      drop(violation)
      return .taken
    case .violation(let violation):
      violate(violation)
      return .none
    case .frame(let frame):
      counters.framesReceived += 1
      do throws(Violation) {
        return FrameStep(try accept(frame, at: position, in: dialect))
      } catch {
        violate(error)
        return .none
      }
    }
  }

  /// Counts and reports a damaged packet.
  mutating func drop(_ violation: Violation) {
    stopFrame()
    counters.damagedPackets += 1
    report(.observed(.damaged(violation)))
  }

  private mutating func accept(
    _ frame: DialectFrame, at position: Int, in dialect: DialectState
  ) throws(Violation) -> Arrival? {
    let head = frame.head
    let body = BodySlice(start: position + frame.body.lowerBound, count: frame.body.count)
    let arrival = Arrival(head.kind, serial: head.serial, tag: head.tag, payload: body)
    switch head.kind {
    case .request:
      return try acceptRequest(arrival, in: dialect)
    case .response:
      return try acceptResponse(arrival, frame, in: dialect)
    case .push:
      return deliver(arrival)
    case .cancel where dialect.facts.cancelsByType:
      acceptCancels(of: MessageType(tag: head.tag), in: dialect)
    case .cancel:
      acceptCancel(head.serial)
    case .ping:
      try acceptPing(head.serial, in: dialect)
    case .pong:
      acceptPong { dialect.framing.pingSerial($0) == head.serial }
    case .item, .end, .credit, .renewal, .hello, .welcome, .goaway, .ignorable:
      preconditionFailure("a dialect has no frames of this kind")
    }
    return nil
  }

  private mutating func acceptRequest(
    _ arrival: Arrival, in dialect: DialectState
  ) throws(Violation) -> Arrival? {
    guard !inbound.contains(arrival.serial) else {
      throw Violation(.serialInUse, kind: FrameKind.request.rawValue, serial: arrival.serial)
    }
    let refusal = countRequest(of: arrival.byteCount)
    inbound.run(arrival.serial, holding: refusal == nil ? arrival.byteCount : 0)
    dialect.answering.insert(arrival.serial, arrival.type)
    guard let refusal else { return arrival }
    respond(id(of: arrival), code: refusal.code, isRefused: true, [])
    tellRefusal(arrival.tag, arrival.serial, refusal)
    return nil
  }

  private mutating func acceptResponse(
    _ arrival: Arrival, _ frame: DialectFrame, in dialect: DialectState
  ) throws(Violation) -> Arrival? {
    switch try dialect.match(frame, to: settings.role) {
    case .response: return deliver(arrival)
    case .ping: try acceptPing(arrival.serial, in: dialect)
    case .unknown: counters.droppedUnknownSerials += 1
    }
    return nil
  }

  /// Cancels all of the peer's requests of a type.
  private mutating func acceptCancels(of type: MessageType, in dialect: DialectState) {
    guard takesCancel() else { return }
    if dialect.answering.first(of: type) == nil { counters.droppedUnknownSerials += 1 }
    while let serial = dialect.answering.first(of: type) {
      dialect.answering.remove(serial)
      cancelled(serial)
    }
  }
}

// MARK: - Sending

extension Connection {
  /// Abandons a request that was sent, and sends a cancel if that is wanted and possible. A cancel
  /// by type applies to all requests of the type, so it is not sent while a caller waits for
  /// another.
  mutating func cancel(_ serial: UInt32, in dialect: DialectState, notifying: Bool) {
    guard let type = dialect.abandon(serial), notifying, dialect.canCancel(type) else { return }
    encodeCancel(serial, of: type)
    updateWaterMarks()
  }
}

// MARK: - Heartbeat

extension Connection {
  /// Runs when the heartbeat timer fires while nothing is suspected.
  mutating func heartbeatElapsed(in dialect: DialectState, unacknowledged: Int) {
    guard now >= heartbeatDue else {
      timers[.heartbeat] = heartbeatDue
      return
    }
    if dialect.canProbe || liveness.isSilent(at: now) && dialect.judgesSilence {
      suspect(unacknowledged: unacknowledged)
    } else {
      _ = ping(at: now)
      timers[.heartbeat] = heartbeatDue
    }
  }

  /// Sends the ping with this number, if this side sends pings.
  mutating func ping(_ id: UInt64, in dialect: DialectState) {
    guard let serial = dialect.framing.pingSerial(id) else { return }
    dialect.lastPing = now
    if dialect.canProbe { liveness.sentPing(id, at: now) }
    outbox.encode(FrameHead(.ping, serial: serial, length: 0))
    counters.pingsSent += 1
  }

  private mutating func acceptPing(
    _ serial: UInt32, in dialect: DialectState
  ) throws(Violation) {
    try countPing()
    guard dialect.facts.answersPings else { return }
    outbox.encode(FrameHead(.pong, serial: serial, length: 0))
  }
}
