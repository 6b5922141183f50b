// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// A core that is told what the core of a recorded connection was told.
final class ReplayedConnection {
  /// Why it cannot go on.
  enum Failure: Error {
    /// It decided something else: what, in words.
    case differs(String)
    /// The recording lacks something: what, in words.
    case lacks(String)
  }

  private var core: Connection
  private var input: RecordedStream
  private var output: RecordedStream
  /// Whether the next call takes a message; otherwise an effect.
  private var takesMessage = true
  private(set) var isClosed = false

  init(_ settings: RecordedSettings, input: RecordedStream, output: RecordedStream) {
    core = Connection(settings: settings.settings, at: settings.instant)
    self.input = input
    self.output = output
  }

  /// Repeats an event at its instant.
  func step(_ event: RecordingFile.Event, _ known: RecordedEvent, at now: LinkInstant)
    throws(Failure)
  {
    let isTaken = known == .taken
    let decided = try take(isTaken ? Int(clamping: event.numbers[0]) : event.taken)
    if known == .effect {
      let numbers = decided.map { RecordedEffect.encode($0, frames: core.counters.framesReceived) }
      guard let numbers, numbers == event.numbers else {
        throw .differs(
          "the core decides \(Self.text(numbers)), and has decided \(Self.text(event.numbers))")
      }
      if case .close = decided { isClosed = true }
      return
    }
    if let decided {
      let numbers = RecordedEffect.encode(decided, frames: core.counters.framesReceived)
      throw .differs("the core decides \(Self.text(numbers)), and has decided nothing")
    }
    try command(known, event.numbers, event.bytes, at: now)
  }

  /// Takes messages and effects as the link did. Returns the effect that came last, behind which
  /// the link has taken nothing; an effect before it is one too many.
  private func take(_ count: Int) throws(Failure) -> Effect? {
    var last: Effect?
    for index in 0..<count {
      if takesMessage {
        takesMessage = core.nextMessage() != nil
        continue
      }
      takesMessage = true
      guard let effect = core.nextEffect() else { continue }
      guard index == count - 1 else {
        let numbers = RecordedEffect.encode(effect, frames: core.counters.framesReceived)
        throw .differs("the core decides \(Self.text(numbers)), and has decided nothing")
      }
      last = effect
    }
    return last
  }

  private static func text(_ numbers: [UInt64]?) -> String {
    guard let numbers, numbers.count == 4 else { return "nothing" }
    let index = Int(clamping: numbers[0]) - 1
    let names = RecordedEffect.names
    let name = names.indices.contains(index) ? names[index] : "\(numbers[0])"
    if name == "close" || name == "abandon",
      let reason = RecordedReason.decode(kind: numbers[1], value: numbers[2])
    {
      return "\(name): \(reason) (after \(numbers[3]) frames)"
    }
    return "\(name) \(numbers[1]) \(numbers[2]) (after \(numbers[3]) frames)"
  }

  // MARK: Commands

  private func command(
    _ event: RecordedEvent, _ numbers: [UInt64], _ bytes: [UInt8], at now: LinkInstant
  ) throws(Failure) {
    switch event {
    case .connected: core.connected(at: now)
    case .received: try receive(Int(clamping: numbers[0]), at: now)
    case .receivedPart: core.receivedPart(at: now)
    case .resumedReading: core.resumedReading(at: now)
    case .ended: core.ended(at: now, isCutOff: numbers[0] != 0)
    case .failed: core.failed(try reason(numbers))
    case .elapsed: core.elapsed(to: now, unacknowledged: Int(clamping: numbers[0]))
    case .wrote: try write(Int(clamping: numbers[0]), at: now)
    case .handlersHadTurn: core.readHold.handlersHadTurn()
    case .handlersTurnEnds: core.readHold.handlersTurnEnds()
    case .mostUnread: core.readHold.mostUnread = Int(clamping: numbers[0])
    case .ping: _ = core.ping(at: now)
    case .probe: core.probe(at: now, unacknowledged: Int(clamping: numbers[0]))
    case .setPace: core.setPace(Int64(bitPattern: numbers[0]))
    case .slowed: core.slowed(at: now)
    case .unslowed: core.unslowed(after: Int64(bitPattern: numbers[0]))
    case .evict: core.evict(at: now)
    case .leave: core.leave(at: now)
    case .close: core.close(try reason(numbers))
    case .goAway: try goAway(numbers, bytes)
    case .shutDown: try shutDown(numbers, bytes, at: now)
    case .takeCredential: _ = core.greeting?.takeCredential()
    case .takeClientID: _ = core.greeting.take()
    case .admit: try admit(numbers, bytes, at: now)
    case .turnAway:
      core.turnAway(try code(numbers[0]), String(decoding: bytes, as: UTF8.self), at: now)
    case .renew:
      core.renew(with: [UInt8](repeating: 0, count: try size(numbers[0])), at: now)
    case .learn: core.learn(try terms(numbers[0], numbers[1], bytes))
    case .taken, .receivedMore, .wroteMore, .effect, .names, .began: break
    case .request, .push, .encodedPush, .cancel, .deadlineMissed, .abandonResponse, .rejectStray,
      .setPriority, .respond, .respondWith, .handlerReturned, .sendItem, .endItems, .tookItems,
      .lentItems, .tookUnread, .streamRequest:
      try exchange(event, numbers, at: now)
    }
  }

  private func exchange(
    _ event: RecordedEvent, _ numbers: [UInt64], at now: LinkInstant
  ) throws(Failure) {
    let (serial, high) = RecordedNumber.pair(numbers[0])
    let id = InboundID(serial: serial, number: high)
    switch event {
    case .request, .streamRequest: try request(numbers, at: now)
    case .push: try push(numbers, at: now)
    case .encodedPush: try encodedPush(numbers)
    case .cancel:
      let position = OutputPosition(
        begin: numbers[1] == 0 ? nil : numbers[1] - 1, ordinal: numbers[2])
      let isNotifying = RecordedFlags(rawValue: high).contains(.isNotifying)
      _ = core.cancel(serial, position, notifying: isNotifying)
    case .deadlineMissed:
      core.deadlineMissed(at: now, unacknowledged: Int(clamping: numbers[0]))
    case .abandonResponse: core.abandonResponse(serial)
    case .rejectStray:
      guard let kind = FrameKind(rawValue: UInt8(clamping: numbers[0])) else {
        throw .lacks("a kind of frame")
      }
      core.rejectStray(kind, serial: UInt32(clamping: numbers[1]))
    case .setPriority: core.inbound.setPriority(UInt32(clamping: numbers[1]), of: serial)
    case .respond:
      let (body, _) = try body(numbers[1])
      _ = try? core.respond(id, code: .ok, count: body.count, body)
    case .respondWith: try respondWith(id, numbers)
    case .handlerReturned: core.inbound.handlerReturned(from: id)
    case .sendItem:
      let (body, _) = try body(numbers[1])
      _ = try? core.sendItem(serial, count: body.count, at: now) { (span) throws(BodyError) in
        try body.encode(into: &span)
      }
    case .endItems: core.endItems(serial, at: now)
    case .tookItems: core.tookItems(serial, cost: Int(clamping: numbers[1]), at: now)
    case .lentItems: core.lentItems(serial, at: now)
    case .tookUnread: core.tookUnread(serial, cost: Int(clamping: numbers[1]))
    default: break
    }
  }

  // MARK: Bytes

  private func receive(_ count: Int, at now: LinkInstant) throws(Failure) {
    // What a closing connection reads is not recorded, and not looked at.
    let bytes = core.isLive ? input.next(count) : [UInt8](repeating: 0, count: count)
    guard let bytes else { throw .lacks("bytes that were read") }
    // The span is used within the call.
    core.inbox.input.append(unsafe bytes.span.bytes)
    core.received(count, at: now)
  }

  private func write(_ count: Int, at now: LinkInstant) throws(Failure) {
    let chunk = core.outbox.chunk
    guard chunk.count >= count else {
      throw .differs("the core has \(chunk.count) bytes to write, and has written \(count)")
    }
    let first = chunk.lowerBound
    let bytes = core.outbox.bytes.withBytes(first..<first + count) { [UInt8](decoding: $0) }
    if let difference = output.compare(bytes[...]) { throw .differs(difference) }
    core.wrote(count, at: now)
  }

  // MARK: Numbers

  private struct ZeroBody: BodyEncodable {
    let count: Int
    let fails: Bool

    var encodedByteCount: Int { count }

    func encode(into output: inout OutputRawSpan) throws(BodyError) {
      if fails { throw BodyError(.notRepresentable) }
      [UInt8](repeating: 0, count: count).encode(into: &output)
    }
  }

  private static let mostBytes = 1 << 31

  private func size(_ number: UInt64) throws(Failure) -> Int {
    guard number <= UInt64(Self.mostBytes) else { throw .lacks("a size that is possible") }
    return Int(number)
  }

  private func body(_ number: UInt64) throws(Failure) -> (ZeroBody, RecordedFlags) {
    let flags = RecordedFlags(rawValue: UInt32(truncatingIfNeeded: number >> 40))
    let count = try size(number & 0xFF_FFFF_FFFF)
    return (ZeroBody(count: count, fails: flags.contains(.failed)), flags)
  }

  private func reason(_ numbers: [UInt64]) throws(Failure) -> CloseReason {
    guard let reason = RecordedReason.decode(kind: numbers[0], value: numbers[1]) else {
      throw .lacks("a reason of the end")
    }
    return reason
  }

  private func code(_ number: UInt64) throws(Failure) -> ResponseCode {
    guard let code = ResponseCode(rawValue: UInt32(clamping: number)) else {
      throw .lacks("a response code")
    }
    return code
  }

  private func terms(
    _ retention: UInt64, _ time: UInt64, _ bytes: [UInt8]
  ) throws(Failure) -> OnceTerms {
    guard let space = KeySpace(bytes), space != .none else { throw .lacks("a key space") }
    return OnceTerms(space: space, retention: UInt32(clamping: retention), time: time)
  }

  private func texts(_ bytes: [UInt8]) -> [String] {
    bytes.split(separator: 0, omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }
  }

  private func goAway(_ numbers: [UInt64], _ bytes: [UInt8]) throws(Failure) {
    let texts = texts(bytes)
    guard UInt64(texts.count) == numbers[2] + 1 else { throw .lacks("the texts of a goaway") }
    let (spread, retryAfter) = RecordedNumber.pair(numbers[1])
    core.goAway(
      code: try code(numbers[0]), reason: texts[0], spread: spread, retryAfter: retryAfter,
      alternatives: Array(texts.dropFirst()))
  }

  private func shutDown(
    _ numbers: [UInt64], _ bytes: [UInt8], at now: LinkInstant
  ) throws(Failure) {
    guard numbers[0] > 0 else { return core.shutDown(at: now) }
    core.shutDown(
      at: now, saying: (try code(numbers[0] - 1), String(decoding: bytes, as: UTF8.self)))
  }

  private func admit(
    _ numbers: [UInt64], _ bytes: [UInt8], at now: LinkInstant
  ) throws(Failure) {
    let once = bytes.isEmpty ? nil : try terms(numbers[1], numbers[2], bytes)
    core.admit(expiresIn: UInt32(clamping: numbers[0]), once: once, at: now)
  }

  // MARK: Messages of this side

  private func metadata(
    _ kind: FrameKind, _ serial: UInt32, _ count: Int?
  ) -> MetadataBlock? {
    count.map { MetadataBlock(output.metadata(of: kind, serial: serial, count: $0)) }
  }

  private func request(_ numbers: [UInt64], at now: LinkInstant) throws(Failure) {
    let (serial, type) = RecordedNumber.pair(numbers[0])
    let (priority, bits) = RecordedNumber.pair(numbers[1])
    let (count, size) = RecordedNumber.sizes(numbers[2])
    let flags = RecordedFlags(rawValue: bits)
    guard count <= Self.mostBytes, core.isOpen, core.settings.role.owns(serial)
    else { throw .differs("the core cannot send a request, and has sent one") }
    var stream: StreamTerms?
    if numbers.count > 3 {
      stream = StreamTerms(
        credit: numbers[3] == 0 ? nil : Int(clamping: numbers[3] - 1),
        largestWindow: numbers[4] == 0 ? nil : Int(clamping: numbers[4] - 1),
        sendsItems: flags.contains(.sendsItems))
    }
    let body = ZeroBody(count: count, fails: flags.contains(.failed))
    _ = try? core.request(
      serial, type: MessageType(tag: type), metadata: metadata(.request, serial, size),
      priority: priority, count: count, stream: stream, at: now
    ) { (span) throws(BodyError) in
      try body.encode(into: &span)
    }
  }

  private func push(_ numbers: [UInt64], at now: LinkInstant) throws(Failure) {
    guard core.isOpen else { throw .differs("the core cannot push, and has pushed") }
    let (type, priority) = RecordedNumber.pair(numbers[0])
    let (body, _) = try body(numbers[1])
    try? core.push(MessageType(tag: type), priority: priority, count: body.count, at: now) {
      (span) throws(BodyError) in
      try body.encode(into: &span)
    }
  }

  private func encodedPush(_ numbers: [UInt64]) throws(Failure) {
    guard core.isOpen else { throw .differs("the core cannot push, and has pushed") }
    let type = MessageType(tag: UInt32(clamping: numbers[0]))
    let body = [UInt8](repeating: 0, count: try size(numbers[1]))
    var outbox = Outbox()
    outbox.encode(
      FrameHead(.push, tag: type.rawValue, serial: Wire.plainPushSerial, length: body.count)
    ) { span in body.encode(into: &span) }
    core.push(type, body, encoded: outbox.takeEncoded())
  }

  private func respondWith(_ id: InboundID, _ numbers: [UInt64]) throws(Failure) {
    let (count, size) = RecordedNumber.sizes(numbers[1])
    let (raw, bits) = RecordedNumber.pair(numbers[2])
    let flags = RecordedFlags(rawValue: bits)
    guard count <= Self.mostBytes else { throw .lacks("a size that is possible") }
    core.respond(
      id, code: try code(UInt64(raw)), isRefused: flags.contains(.isRefused),
      isInterrupting: flags.contains(.isInterrupting),
      ownCode: flags.contains(.hasOwnCode) ? UInt32(clamping: numbers[3]) : nil,
      metadata: metadata(.response, id.serial, size), [UInt8](repeating: 0, count: count))
  }
}
