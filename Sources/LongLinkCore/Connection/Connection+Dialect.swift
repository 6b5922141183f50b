// SPDX-License-Identifier: Apache-2.0

// The differences in a dialect, which has no handshake and no goaway.

extension Connection {
  /// Whether the native protocol is spoken.
  @inline(__always)
  package var isNative: Bool { framing.hasControlFrames }

  /// What this side can do in its dialect; nil for the native protocol.
  package var dialect: DialectFacts? { framing.dialect?.facts }

  /// The meaning of the last response's code; nil in the native protocol.
  package var dialectCode: DialectErrorCode? {
    guard let dialect = framing.dialect, dialect.facts.hasCodes else { return nil }
    return dialect.framing.error(dialect.code) ?? DialectErrorCode(dialect.code, "")
  }

  /// Whether the peer answers pings.
  package var canPing: Bool { framing.canProbe }

  /// A readable explanation why a request cannot have this type; nil if it can.
  package func objection(toRequest type: MessageType, serial: UInt32) -> String? {
    guard let dialect = framing.dialect, !dialect.framing.canSendRequest(type, serial: serial)
    else { return nil }
    return "a request cannot have type \(type) in \(dialect.facts.name)"
  }

  /// A readable explanation why a push cannot have this type; nil if it can.
  package func objection(toPush type: MessageType) -> String? {
    settings.dialect?.objection(toPush: type)
  }

  /// Throws if a body contains the delimiter and the dialect forbids that.
  @inline(__always)
  package func validate(_ body: some BodyEncodable) throws(BodyError) {
    if !isNative { try settings.dialect?.validate(body) }
  }
}

// MARK: - Receiving

extension Connection {
  /// Processes one frame of a dialect, like `nextFrame`.
  mutating func nextFrame(in dialect: DialectState) -> FrameStep {
    while true {
      let position = input.position
      var step = DialectStep.needMore(atLeast: 1)
      unsafe input.withMutableStorage { storage in
        let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: storage[position...])
        step = unsafe dialect.decoder.next(in: rest)
      }
      switch step {
      case .needMore(let wanted):
        trackIncompleteFrame()
        // The length of a delimited packet is not known in advance.
        if !dialect.facts.isDelimited { self.frame.expect(wanted) }
        // While the decoder searches for the next packet, no frame has begun.
        if dialect.decoder.isLost {
          frame.stop()
          timers.clear(.frame)
        }
        return .none
      case .skipped(let count):
        input.skip(count)
      case .damaged(let count, let violation):
        input.skip(count)
        drop(violation)
        return .taken
      case .violation(let violation):
        violate(violation)
        return .none
      case .frame(let frame):
        input.skip(frame.length)
        self.frame.complete()
        counters.framesReceived += 1
        do throws(Violation) {
          return FrameStep(try accept(frame, at: position, in: dialect))
        } catch {
          violate(error)
          return .none
        }
      }
    }
  }

  /// Counts and reports a damaged packet.
  mutating func drop(_ violation: Violation) {
    frame.stop()
    timers.clear(.frame)
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
      acceptPong(head.serial, in: dialect)
    case .item, .end, .credit, .pushAck, .hello, .welcome, .goaway, .ignorable:
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
    let code: ResponseCode = refusal == .draining ? .draining : .overloaded
    respond(id(of: arrival), code: code, isRefused: true, [])
    return nil
  }

  private mutating func acceptResponse(
    _ arrival: Arrival, _ frame: DialectFrame, in dialect: DialectState
  ) throws(Violation) -> Arrival? {
    guard let asked = dialect.asked[arrival.serial] else {
      return try acceptUnknown(arrival.serial, in: dialect)
    }
    if let type = dialect.framing.requestType(of: frame), type != asked.type {
      throw Violation(
        .typeNotAllowed, kind: FrameKind.response.rawValue, serial: arrival.serial,
        value: UInt64(frame.type), expected: dialect.framing.responseType(to: asked.type.rawValue))
    }
    dialect.asked.remove(arrival.serial)
    dialect.code = frame.code
    return deliver(arrival)
  }

  /// Processes a response whose serial matches no current or recent request.
  private mutating func acceptUnknown(
    _ serial: UInt32, in dialect: DialectState
  ) throws(Violation) -> Arrival? {
    switch dialect.facts.unknownSerial {
    case .ping where settings.role == .client:
      try acceptPing(serial, in: dialect)
    case .drop:
      counters.droppedUnknownSerials += 1
    case .violation, .ping:
      throw Violation(.serialOutOfRange, kind: FrameKind.response.rawValue, serial: serial)
    }
    return nil
  }

  /// Cancels all of the peer's requests of a type.
  private mutating func acceptCancels(of type: MessageType, in dialect: DialectState) {
    counters.cancelsReceived += 1
    if let rate = settings.cancelRate, !cancels.take(of: rate, at: now) { return endForCancels() }
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
    guard let type = dialect.asked[serial]?.type else { return }
    dialect.abandon(serial)
    guard notifying, dialect.framing.canSendCancel(of: type),
      !dialect.facts.cancelsByType || !dialect.isAwaited(type)
    else { return }
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

  private mutating func acceptPong(_ serial: UInt32, in dialect: DialectState) {
    let framing = dialect.framing
    guard let ping = liveness.answered(where: { framing.pingSerial($0) == serial }) else {
      counters.droppedPongs += 1
      return
    }
    report(.observed(.ponged(id: ping.id, roundTrip: now - ping.sent)))
  }
}
