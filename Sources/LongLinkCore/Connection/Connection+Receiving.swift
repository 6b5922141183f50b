// SPDX-License-Identifier: Apache-2.0

extension Connection {
  /// Notes that bytes have been appended to `input`.
  package mutating func received(_ count: Int, at now: LinkInstant) {
    self.now = max(self.now, now)
    guard count > 0 else { return }
    counters.bytesReceived += UInt64(count)
    frame.recordEnds()
    if let silence = liveness.read(at: self.now) { endSuspicion(after: silence) }
  }

  /// Notes that bytes of a record of the security have come that is not complete.
  ///
  /// They show that the peer lives, for as long as a frame may take: the length of a record may be
  /// damaged, and then none would ever be complete.
  package mutating func receivedPart(at now: LinkInstant) {
    self.now = max(self.now, now)
    let began = frame.recordGrows(at: self.now)
    guard isOpen, self.now - began < settings.frameTimeout else { return }
    if let silence = liveness.read(at: self.now) { endSuspicion(after: silence) }
  }

  /// Returns how many bytes to read at once, about `limit`, so that no large frame is read in part.
  package func readSize(upTo limit: Int) -> Int {
    frame.readSize(upTo: limit, present: input.count)
  }

  /// Makes room for a read of this size, and for the rest of a frame of which half has arrived.
  ///
  /// So a large frame takes no more memory than its length, and never more than twice what arrived.
  /// `spare` is an empty queue whose memory can be taken in exchange.
  package mutating func makeRoom(for readSize: Int, with spare: inout ByteQueue) {
    let rest = frame.rest(after: input.count)
    let room = max(rest ?? 0, readSize)
    if !input.makeRoom(for: room, with: &spare), rest != nil { input.reserveExactly(room) }
  }

  /// Appends a copy of `bytes` to the input, and notes it.
  package mutating func received(_ bytes: RawSpan, at now: LinkInstant) {
    input.append(bytes)
    received(bytes.byteCount, at: now)
  }

  /// Notes that reading resumes after this side had suspended it.
  package mutating func resumedReading(at now: LinkInstant) {
    self.now = max(self.now, now)
    liveness.heard(at: self.now)
    readHold.resume(at: self.now)
    frame.recordEnds()
    guard isOpen else { return frame.stop() }
    timers[.heartbeat] = heartbeatDue
    if frame.hasBegun { timers[.frame] = self.now + settings.frameTimeout }
  }

  /// Notes that the peer has ended its side of the stream. `isCutOff` states that the stream is
  /// secured and that anyone on the path can have ended it.
  package mutating func ended(at now: LinkInstant, isCutOff: Bool = false) {
    self.now = max(self.now, now)
    switch phase {
    case .closing(let reason):
      close(reason)
    case .closed:
      break
    case .fresh, .identifying, .open:
      if carriage.peerEnds(isWhole: hasWholeRequest) { return }
      if input.isEmpty || framing.isLost {
        let code = peerGoAway.map { ResponseCode(wire: $0.code) }
        close(code.map { .goneAway($0) } ?? carriage.endWithoutReason)
      } else {
        close(isCutOff ? .securityFailed(.cutOff) : .violation(Violation(.truncatedFrame)))
      }
    }
  }

  /// Whether nothing is missing of the request of a short link.
  private var hasWholeRequest: Bool {
    guard input.isEmpty, let serial = carriage.serial else { return false }
    return !assemblies.contains(serial) && streams.hasReceivedAll(serial)
  }

  /// Returns the peer's next message; nil if there is none, or if an effect precedes it.
  ///
  /// The caller ends each request with `respond`, and passes each response to its waiting request.
  package mutating func nextMessage() -> Arrival? {
    // The receiver has already used or taken the last message's bytes.
    if effects.isEmpty {
      if !assembled.isEmpty { assembled = [] }
      if metadata.isTooLong { forgetMetadata() }
    }
    while effects.isEmpty, isReceiving, !holdsReading, !waitsForHandlers {
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
    if case .closing = phase { input.removeAll() }
  }

  /// Returns the next effect; nil if there is none.
  package mutating func nextEffect() -> Effect? { effects.popFirst() }

  /// Whether there are effects.
  package var hasEffects: Bool { !effects.isEmpty }

  mutating func report(_ news: LinkNews) {
    effects.append(.report(news))
  }

  /// The result of processing the next frame.
  enum FrameStep {
    /// There is no complete frame.
    case none
    /// The frame produced no message, but possibly effects.
    case taken
    case message(Arrival)

    init(_ message: Arrival?) {
      self = message.map(FrameStep.message) ?? .taken
    }
  }

  @inline(__always)
  private mutating func nextFrame() -> FrameStep {
    if let dialect = framing.dialect { return nextFrame(in: dialect) }
    let headerLength = NativeLayout.headerLength
    guard input.count >= headerLength else {
      trackIncompleteFrame()
      return .none
    }
    let position = input.position
    do throws(Violation) {
      let head = try unsafe input.withStorage { (storage) throws(Violation) in
        // The guard above ensures `headerLength` bytes at `position`.
        try unsafe NativeLayout.head(at: storage.baseAddress! + position)
      }
      try validate(head)
      guard input.count >= headerLength + head.length else {
        trackIncompleteFrame()
        frame.expect(headerLength + head.length)
        return .none
      }
      let isIntact = unsafe input.withStorage { storage in
        // The guard above ensures that the whole frame is there.
        unsafe NativeLayout.isIntact(at: storage.baseAddress! + position, length: head.length)
      }
      guard isIntact else { throw Violation(.checksumMismatch, head) }
      if !isOpen, settings.identifies, head.kind != .hello {
        identify(Greeting())
        return .none
      }
      if inbound.outlived > 0, leavesToHandlers(head) { return .none }
      input.skip(headerLength + head.length)
      frame.complete(headerLength + head.length, body: head.length)
      counters.framesReceived += 1
      return try accept(head, at: position + headerLength)
    } catch {
      if !endsAsSecurePeer() { violate(error) }
      return .none
    }
  }

  /// Closes the connection if the peer's first bytes are a record of TLS, which no kind of frame
  /// looks like: a client's handshake, or a server's alert.
  private mutating func endsAsSecurePeer() -> Bool {
    guard phase == .fresh, counters.framesReceived == 0, input.count >= 2 else { return false }
    let record: UInt8 = settings.role == .server ? 0x16 : 0x15
    let position = input.position
    let isRecord = unsafe input.withStorage { storage in
      unsafe storage[position] == record && storage[position + 1] == 0x03
    }
    guard isRecord else { return false }
    let goaway = GoAway(
      code: ResponseCode.malformed.rawValue, reason: "this server does not speak TLS")
    beginClosing(
      .securityFailed(.securePeer), saying: settings.role == .server ? goaway : nil)
    return true
  }

  /// Starts the frame timer if the input contains part of a frame, and stops it if it is empty.
  mutating func trackIncompleteFrame() {
    guard !input.isEmpty else {
      frame.stop()
      timers.clear(.frame)
      return
    }
    if phase == .fresh, framing.dialect == nil, endsAsSecurePeer() { return }
    if frame.begin() { timers[.frame] = now + settings.frameTimeout }
  }

  /// Checks a header before its body has arrived.
  @inline(__always)
  private func validate(_ head: FrameHead) throws(Violation) {
    if carriage.isShort {
      let isCollecting = assemblies.contains(head.serial)
      try carriage.validate(head, isOpen: isOpen, isCollecting: isCollecting)
    }
    if !isOpen { try validateFirst(head) }
    let rule = FrameRule(head.kind)
    guard rule.admits(head.serial, from: settings.role.peer) else {
      let isReserved = head.kind == .push && head.serial == Wire.acknowledgedPushSerial
      let isAgreed = agreement.features.contains(FrameRule.features(head.kind))
      throw Violation(isReserved || !isAgreed ? .kindNotAgreed : .serialOutOfRange, head)
    }
    switch rule.content {
    case .message: try validateMessage(head)
    case .item: try validateItem(head)
    case .control(let limit): try validateControl(head, 0...limit)
    case .number(let count): try validateControl(head, count...count)
    case .ignored: try validateLength(head)
    case .unknown: throw Violation(.kindNotAgreed, head)
    }
  }

  @inline(__always)
  private func validateLength(_ head: FrameHead) throws(Violation) {
    guard head.length <= settings.maxBody else {
      throw Violation(.lengthOverLimit, head, value: UInt64(head.length))
    }
  }

  /// Checks that a client does not make a server hold much before the connection is open.
  private func validateFirst(_ head: FrameHead) throws(Violation) {
    guard settings.role == .client || head.length <= Wire.controlLimit else {
      throw Violation(.lengthOverLimit, head, value: UInt64(head.length))
    }
  }

  @inline(__always)
  private func validateMessage(_ head: FrameHead) throws(Violation) {
    if head.kind == .response, head.tag == FrameRule.forbiddenResponseTag {
      throw Violation(.tagNotAllowed, head, value: UInt64(head.tag))
    }
    try validateLength(head)
    if head.flags.isEmpty { return }
    if head.flags.contains(.metadata) {
      guard agreement.features.contains(.metadata) else { throw Violation(.flagNotAllowed, head) }
      guard head.length >= 2 else { throw Violation(.metadataTooLong, head) }
    }
    if head.flags.contains(.more) {
      guard agreement.features.contains(.fragments) else { throw Violation(.flagNotAllowed, head) }
      guard (1...Wire.fragmentLimit).contains(head.length) else {
        throw Violation(.sizeNotAllowed, head, value: UInt64(head.length))
      }
    }
  }

  private func validateItem(_ head: FrameHead) throws(Violation) {
    guard agreement.features.contains(.streams) else { throw Violation(.kindNotAgreed, head) }
    guard head.flags.isSubset(of: .more) else { throw Violation(.flagNotAllowed, head) }
    guard head.tag == 0 else { throw Violation(.tagNotAllowed, head, value: UInt64(head.tag)) }
    try validateLength(head)
    let least = head.flags.contains(.more) ? 1 : 0
    guard (least...Wire.fragmentLimit).contains(head.length) else {
      throw Violation(.sizeNotAllowed, head, value: UInt64(head.length))
    }
  }

  private func validateControl(
    _ head: FrameHead, _ sizes: ClosedRange<Int>
  ) throws(Violation) {
    guard agreement.features.contains(FrameRule.features(head.kind)) else {
      throw Violation(.kindNotAgreed, head)
    }
    guard head.flags.isEmpty else { throw Violation(.flagNotAllowed, head) }
    guard head.tag == 0 else { throw Violation(.tagNotAllowed, head, value: UInt64(head.tag)) }
    guard sizes.contains(head.length) else {
      let isLong = sizes.upperBound == Wire.controlLimit
      throw Violation(
        isLong ? .lengthOverLimit : .sizeNotAllowed, head, value: UInt64(head.length))
    }
  }

  /// Processes a complete, undamaged frame.
  @inline(__always)
  private mutating func accept(
    _ head: FrameHead, at position: Int
  ) throws(Violation) -> FrameStep {
    // While it receives, a connection is either fresh or open.
    if !isOpen { try acceptFirst(head) }
    if carriage.isShort {
      carriage.received(head)
      if head.kind == .request { timers.clear(.handshake) }
    }
    let body = BodySlice(start: position, count: head.length)
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
    case .cancel, .ping, .pong, .hello, .welcome, .goaway, .ignorable, .credit, .pushAck:
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
      acceptPong(body)
    case .hello:
      try acceptHello(head, body)
    case .welcome:
      try acceptWelcome(head, body)
    case .goaway:
      received(goaway: try decode(body, of: head))
    case .ignorable:
      counters.droppedIgnorable += 1
    case .credit:
      try acceptCredit(head, body)
    case .request, .response, .push, .item, .end, .pushAck:
      throw Violation(.kindNotAgreed, head)
    }
  }

  /// Processes an unfragmented message.
  @inline(__always)
  mutating func acceptMessage(
    _ head: FrameHead, _ body: BodySlice
  ) throws(Violation) -> Arrival? {
    let arrival = try arrival(head, body)
    return head.kind == .request ? try acceptRequest(arrival) : try acceptAnswer(arrival)
  }

  /// Processes a complete response or push.
  @inline(__always)
  mutating func acceptAnswer(_ arrival: Arrival) throws(Violation) -> Arrival {
    try readMetadata(of: arrival)
    if !streams.isEmpty, arrival.kind == .response {
      try streamAnswered(arrival.serial, tag: arrival.tag)
    }
    return deliver(arrival)
  }

  /// Separates the metadata and payload of a complete message.
  @inline(__always)
  mutating func arrival(_ head: FrameHead, _ body: BodySlice) throws(Violation) -> Arrival {
    guard head.flags.contains(.metadata) else {
      return Arrival(head.kind, serial: head.serial, tag: head.tag, payload: body)
    }
    let size = withBody(body) { bytes in
      unsafe bytes.withUnsafeBytes { unsafe Int($0[0]) << 8 | Int($0[1]) }
    }
    guard size + 2 <= body.count else {
      throw Violation(.metadataTooLong, head, value: UInt64(size))
    }
    var payload = body
    payload.start += size + 2
    payload.count -= size + 2
    return Arrival(
      head.kind, serial: head.serial, tag: head.tag, metadataCount: size, payload: payload)
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
