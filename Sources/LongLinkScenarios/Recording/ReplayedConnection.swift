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
  /// Where this side's requests are in the output, by serial.
  private var positions: [UInt32: OutputPosition] = [:]

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
    let decided = try take(isTaken ? count(event.numbers[0], 255) : event.taken)
    if known == .effect {
      let numbers = decided.map { RecordedEffect.encode($0, frames: core.counters.framesReceived) }
      guard let numbers, numbers == event.numbers else {
        throw .differs(
          "the core decides \(Self.text(numbers)), and has decided \(Self.text(event.numbers))")
      }
      switch decided {
      case .close: isClosed = true
      case .report(.request(.began(let serial, let begin, let ordinal))):
        positions[serial] = OutputPosition(begin: begin, ordinal: ordinal)
      default: break
      }
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
    case .received: try receive(size(numbers[0]), at: now)
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
    case .setPace:
      guard Int64(bitPattern: numbers[0]) >= 1_000 else { throw .lacks("a pace that is possible") }
      core.setPace(Int64(bitPattern: numbers[0]))
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
      let count = try count(numbers[0], UInt64(Wire.credentialLimit))
      core.renew(with: [UInt8](repeating: 0, count: count), at: now)
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
    case .cancel: try cancel(serial, RecordedFlags(rawValue: high), numbers)
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
      guard core.mayRespond(id, .ok) else { throw Self.differs("respond with 200") }
      _ = try? core.respond(id, code: .ok, count: body.count, body)
    case .respondWith: try respondWith(id, numbers)
    case .handlerReturned: core.inbound.handlerReturned(from: id)
    case .sendItem:
      let (body, _) = try body(numbers[1])
      guard core.maySendItem(serial) else { throw Self.differs("send an item") }
      _ = try? core.sendItem(serial, count: body.count, at: now) { (span) throws(BodyError) in
        try body.encode(into: &span)
      }
    case .endItems: core.endItems(serial, at: now)
    case .tookItems:
      let cost = Int(clamping: numbers[1])
      guard core.mayTakeItems(serial, cost: cost) else { throw Self.differs("have such items") }
      core.tookItems(serial, cost: cost, at: now)
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

  /// The most bytes of one event, and of all that the core holds: the file may come from anyone.
  private static let mostBytes: UInt64 = 1 << 26
  private static let mostHeld = 1 << 30

  private func count(_ number: UInt64, _ most: UInt64 = mostBytes) throws(Failure) -> Int {
    guard number <= most else { throw .lacks("a number that is possible") }
    return Int(number)
  }

  /// A size in bytes, for which there is room.
  private func size(_ number: UInt64) throws(Failure) -> Int {
    let size = try count(number)
    let held = core.held
    guard held.open + held.outlived + size <= Self.mostHeld else {
      throw .lacks("the memory of a link: it holds more than 1 GiB")
    }
    return size
  }

  private static func differs(_ verb: String) -> Failure {
    .differs("the core cannot \(verb), and has done it")
  }

  private func body(_ number: UInt64) throws(Failure) -> (ZeroBody, RecordedFlags) {
    let flags = RecordedFlags(rawValue: UInt32(truncatingIfNeeded: number >> 40))
    let size = try size(number & 0xFF_FFFF_FFFF)
    return (ZeroBody(count: size, fails: flags.contains(.failed)), flags)
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
    _ kind: FrameKind, _ serial: UInt32, _ size: Int?
  ) throws(Failure) -> MetadataBlock? {
    guard let size else { return nil }
    let count = try count(UInt64(size), UInt64(Wire.metadataLimit))
    return MetadataBlock(output.metadata(of: kind, serial: serial, count: count))
  }

  private func request(_ numbers: [UInt64], at now: LinkInstant) throws(Failure) {
    let (serial, type) = RecordedNumber.pair(numbers[0])
    let (priority, bits) = RecordedNumber.pair(numbers[1])
    let (bytes, metadataSize) = RecordedNumber.sizes(numbers[2])
    let flags = RecordedFlags(rawValue: bits)
    guard core.mayRequest(serial) else { throw Self.differs("send the request \(serial)") }
    var stream: StreamTerms?
    if numbers.count > 3 {
      stream = StreamTerms(
        credit: try credit(numbers[3]), largestWindow: try credit(numbers[4]),
        sendsItems: flags.contains(.sendsItems))
    }
    let body = ZeroBody(count: try size(UInt64(bytes)), fails: flags.contains(.failed))
    let metadata = try metadata(.request, serial, metadataSize)
    positions[serial] = try? core.request(
      serial, type: MessageType(tag: type), metadata: metadata, priority: priority,
      count: body.count, stream: stream, at: now
    ) { (span) throws(BodyError) in
      try body.encode(into: &span)
    }
  }

  /// A number of bytes plus 1; nil for 0.
  private func credit(_ number: UInt64) throws(Failure) -> Int? {
    number == 0 ? nil : try count(number - 1, UInt64(Wire.mostCredit))
  }

  private func cancel(
    _ serial: UInt32, _ flags: RecordedFlags, _ numbers: [UInt64]
  ) throws(Failure) {
    let position = OutputPosition(
      begin: numbers[1] == 0 ? nil : numbers[1] - 1, ordinal: numbers[2])
    guard position.begin == nil || position == positions[serial] else {
      throw .differs("the core has the request \(serial) at another place")
    }
    _ = core.cancel(serial, position, notifying: flags.contains(.isNotifying))
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
    let (bytes, metadataSize) = RecordedNumber.sizes(numbers[1])
    let (raw, bits) = RecordedNumber.pair(numbers[2])
    let flags = RecordedFlags(rawValue: bits)
    let code = try code(UInt64(raw))
    let count = try size(UInt64(bytes))
    guard core.mayRespond(id, code) else { throw Self.differs("respond with 200") }
    core.respond(
      id, code: code, isRefused: flags.contains(.isRefused),
      isInterrupting: flags.contains(.isInterrupting),
      ownCode: flags.contains(.hasOwnCode) ? UInt32(clamping: numbers[3]) : nil,
      metadata: try metadata(.response, id.serial, metadataSize),
      [UInt8](repeating: 0, count: count))
  }
}
