extension Session {
  /// Tells that bytes have been appended to `input`.
  package mutating func received(_ count: Int, at now: LinkInstant) {
    self.now = max(self.now, now)
    guard count > 0 else { return }
    counters.bytesReceived += UInt64(count)
    lastRead = self.now
    missedDeadlines = 0
    if suspicion != nil { endSuspicion() }
    silenceProbed = 0
  }

  /// Appends a copy of `bytes` and tells of it.
  package mutating func received(_ bytes: RawSpan, at now: LinkInstant) {
    input.append(bytes)
    received(bytes.byteCount, at: now)
  }

  /// Tells that reading goes on after this side had kept itself from it.
  package mutating func resumedReading(at now: LinkInstant) {
    self.now = max(self.now, now)
    lastRead = self.now
    missedDeadlines = 0
    suspicion = nil
    silenceProbed = 0
    if isOpen { timers[.heartbeat] = heartbeatDue }
    frameBegan = nil
  }

  /// Tells that the peer has ended its side of the stream.
  package mutating func ended(at now: LinkInstant) {
    self.now = max(self.now, now)
    switch phase {
    case .closing(let reason):
      close(reason)
    case .closed:
      break
    case .fresh, .greeting, .open:
      if input.isEmpty || dialect?.decoder.isLost == true {
        let code = peerGoAway.map { ResponseCode(rawValue: $0.code) }
        close(code.map { .goneAway($0) } ?? .closedByPeer)
      } else {
        close(.violation(Violation(.truncatedFrame)))
      }
    }
  }

  /// The next thing to do; nil when there is nothing until something happens.
  package mutating func nextEffect() -> Effect? {
    if let effect = effects.popFirst() { return effect }
    while acceptsFrames {
      guard let effect = nextFrame() else { break }
      if effects.isEmpty {
        if let effect { return effect }
      } else {
        // What the frame set off before comes first.
        if let effect { effects.append(effect) }
        return effects.popFirst()
      }
    }
    if case .closing = phase { input.removeAll() }
    return effects.popFirst()
  }

  private var acceptsFrames: Bool {
    switch phase {
    case .fresh, .open: !holdsReading
    case .greeting, .closing, .closed: false
    }
  }

  /// Takes one frame: nil when there is no whole one, `.some(nil)` when it asks for nothing.
  @inline(__always)
  private mutating func nextFrame() -> Effect?? {
    if let dialect { return nextFrame(in: dialect) }
    let headerLength = NativeLayout.headerLength
    guard input.count >= headerLength else {
      noteIncompleteFrame()
      return nil
    }
    let position = input.position
    do throws(Violation) {
      let head = try unsafe input.withStorage { (storage) throws(Violation) in
        // There are `headerLength` bytes at `position`, as was just checked.
        try unsafe NativeLayout.head(at: storage.baseAddress! + position)
      }
      try judge(head)
      guard input.count >= headerLength + head.length else {
        noteIncompleteFrame()
        return nil
      }
      let isIntact = unsafe input.withStorage { storage in
        // The whole frame is there, as was just checked.
        unsafe NativeLayout.isIntact(at: storage.baseAddress! + position, length: head.length)
      }
      guard isIntact else { throw Violation(.checksumMismatch, head) }
      input.skip(headerLength + head.length)
      frameBegan = nil
      counters.framesReceived += 1
      return .some(try accept(head, at: position + headerLength))
    } catch {
      violate(error)
      return nil
    }
  }

  /// A frame has begun and its end is awaited, or nothing waits.
  mutating func noteIncompleteFrame() {
    guard !input.isEmpty else {
      frameBegan = nil
      timers.clear(.frame)
      return
    }
    if frameBegan == nil {
      frameBegan = now
      timers[.frame] = now + settings.frameTimeout
    }
  }

  /// Judges a header by what is known before the body has come.
  @inline(__always)
  private func judge(_ head: FrameHead) throws(Violation) {
    switch head.kind {
    case .request, .response:
      let owner = head.kind == .request ? settings.role.peer : settings.role
      guard owner.owns(head.serial) else { throw Violation(.serialOutOfRange, head) }
      if head.kind == .response, head.tag == Wire.refusedBit | ResponseCode.ok.rawValue {
        throw Violation(.tagNotAllowed, head, value: UInt64(head.tag))
      }
      try judgeMessage(head)
    case .push:
      guard head.serial == Wire.plainPushSerial else {
        let reserved = head.serial == Wire.acknowledgedPushSerial
        throw Violation(reserved ? .kindNotAgreed : .serialOutOfRange, head)
      }
      try judgeMessage(head)
    case .cancel:
      guard settings.role.peer.owns(head.serial) else { throw Violation(.serialOutOfRange, head) }
      try judgeControl(head, sizes: 0...0)
    case .ping, .pong:
      guard head.serial == 0 else { throw Violation(.serialOutOfRange, head) }
      try judgeControl(head, sizes: 0...Wire.pingLimit)
    case .hello, .welcome:
      guard head.serial == Wire.handshakeSerial else { throw Violation(.serialOutOfRange, head) }
      try judgeControl(head, sizes: 0...Wire.controlLimit)
    case .goaway:
      guard head.serial == Wire.goawaySerial else { throw Violation(.serialOutOfRange, head) }
      try judgeControl(head, sizes: 0...Wire.controlLimit)
    case .item, .end, .credit, .pushAck:
      throw Violation(.kindNotAgreed, head)
    case .ignorable:
      guard head.length <= settings.maxBody else {
        throw Violation(.lengthOverLimit, head, value: UInt64(head.length))
      }
    }
  }

  @inline(__always)
  private func judgeMessage(_ head: FrameHead) throws(Violation) {
    guard head.length <= settings.maxBody else {
      throw Violation(.lengthOverLimit, head, value: UInt64(head.length))
    }
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

  private func judgeControl(
    _ head: FrameHead, sizes: ClosedRange<Int>
  ) throws(Violation) {
    guard head.flags.isEmpty else { throw Violation(.flagNotAllowed, head) }
    guard head.tag == 0 else { throw Violation(.tagNotAllowed, head, value: UInt64(head.tag)) }
    guard sizes.contains(head.length) else {
      let isControl = sizes.upperBound == Wire.controlLimit
      let rule = isControl ? Violation.Rule.lengthOverLimit : .sizeNotAllowed
      throw Violation(rule, head, value: UInt64(head.length))
    }
  }

  /// Acts on a frame that is whole and undamaged.
  @inline(__always)
  private mutating func accept(
    _ head: FrameHead, at position: Int
  ) throws(Violation) -> Effect? {
    if phase == .fresh { try acceptFirst(head) }
    let body = BodySlice(start: position, count: head.length)
    switch head.kind {
    case .request, .response, .push:
      if head.flags.contains(.more) || !assemblies.isEmpty {
        return try acceptFragment(head, body)
      }
      let arrival = try arrival(head, body)
      return head.kind == .request ? try acceptRequest(arrival) : deliver(head.kind, arrival)
    case .cancel:
      return acceptCancel(head.serial)
    case .ping:
      try acceptPing(body)
      return nil
    case .pong:
      return acceptPong(body)
    case .hello:
      try acceptHello(head)
      return .decodeHello(body)
    case .welcome:
      try acceptWelcome(head)
      return .decodeWelcome(body)
    case .goaway:
      return .decodeGoAway(body)
    case .ignorable:
      counters.droppedIgnorable += 1
      return nil
    case .item, .end, .credit, .pushAck:
      throw Violation(.kindNotAgreed, head)
    }
  }

  /// Tells metadata and payload of a whole message apart.
  @inline(__always)
  mutating func arrival(_ head: FrameHead, _ body: BodySlice) throws(Violation) -> Arrival {
    guard head.flags.contains(.metadata) else {
      return Arrival(serial: head.serial, tag: head.tag, payload: body)
    }
    let size = withBody(body) { bytes in
      unsafe bytes.withUnsafeBytes { unsafe Int($0[0]) << 8 | Int($0[1]) }
    }
    guard size + 2 <= body.count else {
      throw Violation(.metadataTooLong, head, value: UInt64(size))
    }
    var metadata = body
    metadata.start += 2
    metadata.count = size
    var payload = body
    payload.start += size + 2
    payload.count -= size + 2
    return Arrival(serial: head.serial, tag: head.tag, metadata: metadata, payload: payload)
  }

  mutating func acceptRequest(_ arrival: Arrival) throws(Violation) -> Effect? {
    guard !inbound.contains(arrival.serial) else {
      throw Violation(.serialInUse, kind: FrameKind.request.rawValue, serial: arrival.serial)
    }
    if let code = countRequest() {
      refuse(arrival.serial, code)
      return nil
    }
    inbound.insert(Inbound(state: .running), for: arrival.serial)
    return .request(arrival)
  }

  /// Counts a new request and says why it cannot be taken; nil when it can.
  mutating func countRequest() -> ResponseCode? {
    counters.requestsReceived += 1
    if saidGoAway { return .draining }
    requestsAccepted += 1
    return inbound.count >= settings.maxInFlight ? .overloaded : nil
  }

  mutating func deliver(_ kind: FrameKind, _ arrival: Arrival) -> Effect {
    if kind == .push {
      counters.pushesReceived += 1
      return .push(arrival)
    }
    counters.responsesReceived += 1
    if outbox.holdsBack,
      outbox.withdraw(.request, serial: arrival.serial, encodedAt: nil) == .partial
    {
      // The answer came before the request was sent to its end; the peer may forget the rest.
      encodeCancel(arrival.serial)
    }
    followMarks()
    return .response(arrival)
  }

  mutating func acceptCancel(_ serial: UInt32) -> Effect? {
    counters.cancelsReceived += 1
    return cancelled(serial)
  }

  /// The peer wants no answer to a request.
  mutating func cancelled(_ serial: UInt32) -> Effect? {
    let wasDiscarding = dropAssembly(serial)
    guard let exchange = inbound.remove(serial) else {
      // A cancel that crossed the response, or came twice.
      if !wasDiscarding { counters.droppedUnknownSerials += 1 }
      return nil
    }
    dialect?.answering.remove(serial)
    switch exchange.state {
    case .assembling:
      return nil
    case .running:
      return .cancel(serial: serial)
    case .responding:
      _ = outbox.withdraw(.response, serial: serial, encodedAt: nil)
      followMarks()
      return nil
    }
  }

  /// Lends the bytes of a message that the last effect told of.
  ///
  /// It is mutating only so that a session which a class holds is used in place and not copied.
  package mutating func withBody<Result, Failure>(
    _ slice: BodySlice, _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let range = slice.start..<slice.start + slice.count
    return slice.isAssembled
      ? try assembled.withBytes(range, body) : try input.withBytes(range, body)
  }

  /// A copy of the bytes of a message that the last effect told of.
  package mutating func bytes(of slice: BodySlice) -> [UInt8] {
    withBody(slice) { [UInt8](decoding: $0) }
  }
}
