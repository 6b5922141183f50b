/// A ping that was sent and not yet answered.
struct OutstandingPing: Equatable, Sendable {
  let id: UInt64
  let sent: LinkInstant
}

extension Session {
  /// Pings that may still be answered.
  package var pingsUnanswered: Int { pings.count }

  /// Sends a ping and returns the number by which `.ponged` will name it.
  package mutating func ping(at now: LinkInstant) -> UInt64 {
    self.now = max(self.now, now)
    let id = nextPing
    nextPing += 1
    guard isLive else { return id }
    // A peer that sends, but answers no ping, must not make this grow.
    if pings.count >= Wire.pingsPerWindow { _ = pings.popFirst() }
    pings.append(OutstandingPing(id: id, sent: self.now))
    outbox.encode(FrameHead(.ping, length: 8)) { span in
      // Any integer may be appended as its bytes.
      unsafe span.append(id.bigEndian, as: UInt64.self)
    }
    counters.pingsSent += 1
    return id
  }

  /// The heartbeat's time has come: ask for a sign of life, or give the peer up.
  mutating func heartbeatElapsed() {
    guard isOpen else { return }
    guard !holdsReading else {
      // This side keeps itself from reading; the timer for writing judges the peer meanwhile.
      timers[.heartbeat] = now + agreement.heartbeatInterval
      return
    }
    if let silentUntil {
      if now >= silentUntil {
        close(.heartbeatLost)
      } else {
        timers[.heartbeat] = silentUntil
      }
    } else if now - lastRead >= agreement.heartbeatInterval {
      suspect()
    } else {
      timers[.heartbeat] = lastRead + agreement.heartbeatInterval
    }
  }

  /// Asks for a sign of life after a silence; only a byte that is read ends the suspicion.
  private mutating func suspect() {
    _ = ping(at: now)
    let limit = now + agreement.heartbeatTimeout
    silentUntil = limit
    timers[.heartbeat] = min(limit, now + agreement.heartbeatInterval)
  }

  /// Sends a ping ahead of data that follows a long silence.
  @inline(__always)
  mutating func probeBeforeData() {
    if now - lastRead >= agreement.heartbeatInterval, silentUntil == nil { suspect() }
  }

  /// Asks for a sign of life now, unless that was done and may still be answered.
  package mutating func probe(at now: LinkInstant) {
    self.now = max(self.now, now)
    if isOpen, silentUntil == nil { suspect() }
  }

  mutating func acceptPing(_ body: BodySlice) throws(Violation) {
    counters.pingsReceived += 1
    let windowStart = now + -Wire.pingWindow
    pingTimes.removeAll { $0 <= windowStart }
    pingTimes.append(now)
    guard pingTimes.count <= Wire.pingsPerWindow else {
      throw Violation(.tooManyPings, kind: FrameKind.ping.rawValue, serial: 0)
    }
    unsafe input.withStorage { storage in
      // The body stands in the input, taken but not yet appended to.
      let bytes = unsafe UnsafeRawBufferPointer(
        rebasing: storage[body.start..<body.start + body.count])
      outbox.encode(FrameHead(.pong, length: body.count)) { span in
        unsafe span.appendBytes(bytes)
      }
    }
  }

  mutating func acceptPong(_ body: BodySlice) -> Effect? {
    let id: UInt64? = withBody(body) { bytes in
      guard bytes.byteCount == 8 else { return nil }
      return UInt64(bigEndian: unsafe bytes.unsafeLoadUnaligned(as: UInt64.self))
    }
    guard let id, let ping = pings.remove(where: { $0.id == id }) else {
      counters.droppedPongs += 1
      return nil
    }
    return .ponged(id: id, roundTrip: now - ping.sent)
  }
}
