// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDialects
import LongLinkDriver
import LongLinkProtobufC

/// A connection whose peer, driver and application do what the input says.
enum ConnectionFuzz {
  static func run(
    _ role: Role, inDialect: Bool = false, isShort: Bool = false, _ bytes: [UInt8]
  ) throws {
    var input = FuzzInput(bytes)
    var settings = ConnectionSettings(role: role)
    settings.isShort = isShort
    let flags = input.byte()
    // Small limits are reached by small inputs.
    if flags & 1 != 0 { settings.maxBody = 300 }
    if flags & 2 != 0 { settings.maxInFlight = 3 }
    if flags & 4 != 0 { settings.maxRequestBytes = 500 }
    if flags & 8 != 0 { settings.encodeLimit = 200 }
    if flags & 16 != 0 { settings.maxUnread = 4000 }
    if flags & 32 != 0 { settings.features = [] }
    settings.usesOnce = flags & 16 == 0 && !inDialect
    settings.identifies = flags & 64 != 0 && role == .server
    if flags & 64 != 0 { settings.credential = [1] }
    if flags & 128 != 0 {
      settings.windows.first = 1_024
      (settings.windows.largest, settings.windows.total) = (2_048, 2_048)
    }
    if inDialect {
      guard let dialect = input.dialect(isDelimited: flags & 64 != 0) else { return }
      let field = dialect.layout.shape(from: role).header.first { $0.meaning == .token }
      settings.dialect = try DialectCodec(
        dialect, role: role, token: [UInt8](repeating: 7, count: field?.width ?? 0))
      settings.maxBody = dialect.maximumBody
      settings.heartbeatInterval = 30_000_000_000
    }
    let side = FuzzSide(settings)
    try side.drain()
    while !input.isEmpty, !side.connection.isClosed { try side.act(&input) }
    try side.finish()
  }
}

/// One end of a connection, and what its driver does for it.
final class FuzzSide {
  var connection: Connection
  let role: Role
  private let settings: ConnectionSettings
  private let codec: DialectCodec?
  private(set) var now = LinkInstant(nanoseconds: 1_000_000_000_000)
  /// The peer's requests that run, with what each counts for.
  var running: [(id: InboundID, bytes: Int)] = []
  /// What the handlers count for whose requests are over.
  private var outlived: [(id: InboundID, bytes: Int)] = []
  var asked: [(serial: UInt32, placement: OutputPosition)] = []
  var nextSerial: UInt32
  /// The costs of the items that nobody has taken, by stream.
  var untaken: [UInt32: [Int]] = [:]
  /// The streams of which an item waits to be sent.
  var sending: Set<UInt32> = []
  private var given: UInt64 = 0
  private var written: UInt64 = 0
  private var abandons = 0
  private var closes = 0

  init(_ settings: ConnectionSettings) {
    connection = Connection(settings: settings, at: now)
    self.settings = settings
    role = settings.role
    codec = settings.dialect as? DialectCodec
    let first = role == .client ? Wire.firstSerial : Wire.firstSerial | Wire.serverBit
    nextSerial = codec.map { $0.facts.serials?.lowerBound ?? 0 } ?? first
    connection.connected(at: now)
  }

  func act(_ input: inout FuzzInput) throws(FuzzFailure) {
    switch input.byte() % 16 {
    case 0: try receive(input.take(Int(input.byte())))
    case 1, 2, 3, 4: try receive(codec.map { frame(of: $0, &input) } ?? frame(&input))
    case 5: try receive(codec == nil ? greeting(&input) : input.take(Int(input.byte() % 8)))
    case 6: try pass(Int64(input.word()) * 1_000_000)
    case 7: try request(&input)
    case 8: try respond(&input)
    case 9 where !connection.settings.isShort: push(input.pick(9, 0x60, 0x71), input.below(2000))
    case 10: cancel(input.below(max(1, asked.count)), notifying: input.byte() & 1 == 0)
    case 11: write(Int(input.word()))
    case 12 where !connection.settings.isShort: _ = connection.isOpen ? connection.ping(at: now) : 0
    case 13:
      connection.goAway(
        code: .draining, reason: "fuzz", spread: 5, retryAfter: 6, alternatives: ["a:1"])
    case 14:
      let choice = input.byte()
      switch choice % 10 {
      case 8 where role == .client: connection.renew(with: [1, 2], at: now)
      case 8: connection.admit(expiresIn: 9, once: choice < 128 ? terms : nil, at: now)
      case 9: connection.turnAway(.unauthenticated, "fuzz", at: now)
      case 0: connection.ended(at: now)
      case 1: connection.shutDown(at: now)
      case 2: connection.failed(.transport(104))
      case 3: HeldMemory.releaseStorage(of: &connection)
      case 4: connection.setPace(200_000_000 + Int64(input.word()) * 1_000_000)
      case 5: returnHandlers()
      case 6: connection.evict(at: now)
      default: if codec == nil { try actOnStream(&input) }
      }
    default: write(.max)
    }
    try drain()
  }

  /// A frame with a checksum that holds, whatever else it says.
  private func frame(_ input: inout FuzzInput) -> [UInt8] {
    let kind = input.byte()
    let own = role == .client ? Wire.serverBit : 0
    let serial: UInt32 =
      switch input.byte() % 8 {
      case 0: UInt32(input.byte())
      case 1: input.long()
      case 2: asked.last?.serial ?? 0
      case 3: asked.first?.serial ?? 1
      case 4: 1
      case 5: 0
      default: Wire.firstSerial + UInt32(input.byte() % 8) | own
      }
    let tag: UInt32 = input.pick(1, 200, 404, 0, 0x80_01F7, UInt32(input.word()))
    let long = input.byte() & 7 == 0
    let body = input.take(Int(long ? input.word() : UInt16(input.byte() % 32)))
    return sealed(kind, tag, serial, body)
  }

  /// A frame that the peer could write.
  private func frame(of codec: DialectCodec, _ input: inout FuzzInput) -> [UInt8] {
    let writer = codec.mirrored
    var head = FrameHead(input.pick(.request, .response, .push, .ping, .pong, .cancel), length: 0)
    head.tag = input.pick(1, 0x60, 0x70, 200, 0, 0x50, UInt32(input.word()))
    head.about = input.pick(7, 0x47, 0, UInt32(input.byte()))
    let ours = asked.isEmpty ? 0 : asked[input.below(asked.count)].serial
    let theirs = (writer.facts.serials?.lowerBound ?? 20) &+ UInt32(input.byte() % 8)
    head.serial = input.pick(theirs, ours, UInt32(input.byte()), input.long())
    if head.kind == .ping || head.kind == .pong { head.serial = UInt32(input.byte() % 12) }
    let count = min(Int(input.byte()), codec.dialect.maximumBody)
    let body =
      head.kind == .request || head.kind == .response || head.kind == .push
      ? input.take(count) : []
    head.length = body.count
    return writer.written(head, body) ?? []
  }

  func receive(_ bytes: [UInt8]) throws(FuzzFailure) {
    guard !connection.isClosed, !connection.holdsReading else { return }
    given += UInt64(bytes.count)
    unsafe connection.inbox.input.append(bytes.span.bytes)
    connection.received(bytes.count, at: now)
  }

  private func pass(_ nanoseconds: Int64) throws(FuzzFailure) {
    let target = now + nanoseconds
    var turns = 0
    while connection.deadline <= target, !connection.isClosed {
      now = max(now, connection.deadline)
      connection.elapsed(to: now)
      try drain()
      turns += 1
      try expect(turns < 10_000, "a timer goes off again and again")
    }
    now = target
    connection.elapsed(to: now)
  }

  private func request(_ input: inout FuzzInput) throws(FuzzFailure) {
    let count = input.below(3000)
    let choice = input.byte()
    let metadata =
      choice & 1 == 0 && connection.agreement.features.contains(.metadata)
      ? try block(forOnce: choice & 2 != 0) : nil
    let type: MessageType = input.pick(7, 7, 8, 0x60)
    let length = count + (metadata.map { $0.count + 2 } ?? 0)
    guard mayAsk, connection.isOpen, length <= connection.agreement.maxBody,
      connection.framing.objection(toRequest: type, serial: nextSerial) == nil,
      codec.map({ $0.facts.serials?.contains(nextSerial) == true }) ?? true
    else { return }
    let body = [UInt8](repeating: input.pick(3, 0), count: count)
    guard (try? connection.framing.validate(body)) != nil else { return }
    do throws(BodyError) {
      let placement = try connection.request(
        nextSerial, type: type, metadata: metadata,
        priority: UInt32(input.byte() % 3),
        count: count, at: now
      ) { span in body.encode(into: &span) }
      asked.append((nextSerial, placement))
      nextSerial += 1
    } catch {
      throw FuzzFailure("bytes could not be encoded")
    }
  }

  private func respond(_ input: inout FuzzInput) throws(FuzzFailure) {
    guard !running.isEmpty else { return }
    let handler = running.remove(at: input.below(running.count))
    let serial = handler.id.serial
    let body = [UInt8](repeating: 4, count: input.below(3000) % (connection.agreement.maxBody + 1))
    let own: UInt32? = codec == nil ? nil : input.pick(nil, 9, 7, 12)
    let isEarly = input.byte() & 3 == 0
    // A response with code 200 is not for within an item.
    let code: ResponseCode = sending.contains(serial) ? .failed : input.pick(.ok, .failed)
    forgetStream(serial)
    connection.respond(
      handler.id, code: code, isInterrupting: isEarly, ownCode: own,
      metadata: codec == nil && !isEarly ? try replay(&input) : nil, body)
    if isEarly { outlived.append(handler) }
  }

  private func returnHandlers() {
    for handler in outlived { connection.inbound.handlerReturned(from: handler.id) }
    outlived = []
  }

  func cancel(_ index: Int, notifying: Bool) {
    guard asked.indices.contains(index) else { return }
    let (serial, placement) = asked.remove(at: index)
    _ = connection.cancel(serial, placement, notifying: notifying)
    forgetStream(serial)
  }

  private func write(_ most: Int) {
    let count = min(connection.outbox.chunk.count, most)
    let wasHolding = connection.holdsReading
    connection.wrote(count, at: now)
    written += UInt64(count)
    if wasHolding, !connection.holdsReading { connection.resumedReading(at: now) }
  }

  // MARK: - What has to hold

  /// Carries out what the connection asks for, and judges what it is then like.
  func drain() throws(FuzzFailure) {
    var turns = 0
    while let effect = connection.nextMessage().map(Effect.message) ?? connection.nextEffect() {
      try expect(closes == 0, "\(effect) came behind the end")
      try perform(effect)
      turns += 1
      try expect(turns < 100_000, "effects without end")
    }
    if connection.readHold.waitsForHandlers {
      connection.readHold.handlersHadTurn()
      try drain()
      connection.readHold.handlersTurnEnds()
    }
    try judge()
  }

  private func judge() throws(FuzzFailure) {
    let counters = connection.counters
    try expect(counters.bytesReceived == given, "bytes were read and not counted")
    try expect(counters.bytesSent == written, "bytes were written and not counted")
    let least = codec == nil ? UInt64(NativeLayout.headerLength) : 1
    try expect(counters.framesReceived * least <= given, "more frames than bytes for them")
    let told =
      counters.requestsReceived + counters.responsesReceived + counters.pushesReceived
      + counters.pingsReceived + counters.cancelsReceived + counters.droppedPongs
      + counters.droppedIgnorable + counters.itemsReceived + counters.lateItems
      + counters.lateEnds + counters.lateCredits
    try expect(counters.damagedPackets <= given, "more damage than bytes")
    try expect(told <= counters.framesReceived, "something was counted twice")
    try expect(connection.inbound.count <= settings.maxInFlight, "too many requests run")
    try expect(running.count + outlived.count <= settings.maxInFlight, "too many handlers")
    try expect(connection.inbound.outlived == outlived.count, "handlers are not counted")
    let left = outlived.reduce(0) { $0 + $1.bytes + HeldMemory.ofRequest }
    try expect(connection.held.outlived == left, "the bytes of handlers are not counted")
    let open = connection.held.open
    try expect(open >= 0 && open >= connection.held.room, "memory is counted that is not there")
    let most = role == .client ? .max : settings.maxRequestBytes + settings.maxBody
    try expect(connection.requestBytes <= most, "the requests hold too much")
    try expect(held(in: untaken) <= windowLimit, "more items than windows for them")
    let accepted = connection.goodbyes.requestsAccepted
    try expect(accepted <= counters.requestsReceived, "accepted, not received")
    try expect(
      connection.inbox.input.capacity <= 2 * Int(given) + 4096,
      "memory was promised for what never came")
    try expect(connection.liveness.pingsUnanswered <= 100, "pings are remembered without end")
    if connection.isClosed {
      try expect(closes == 1, "closed without a word")
      try expect(connection.inbound.count == 0, "requests run beyond the end")
    }
  }

  private func perform(_ effect: Effect) throws(FuzzFailure) {
    switch effect {
    case .message(let arrival): try take(arrival)
    case .report(let news): try hear(news)
    case .shutDownWriting: break
    case .close:
      closes += 1
      try expect(abandons == 1, "closed, and nothing was abandoned")
    }
  }

  private func hear(_ news: LinkNews) throws(FuzzFailure) {
    switch news {
    case .cancel(let id):
      forgetStream(id.serial)
      if let index = running.firstIndex(where: { $0.id == id }) {
        outlived.append(running.remove(at: index))
      }
    case .request(.collect(let serial)):
      if !asked.contains(where: { $0.serial == serial }) { connection.abandonResponse(serial) }
    case .request(.began(let serial, let begin, let ordinal)):
      if let index = asked.firstIndex(where: { $0.serial == serial }) {
        asked[index].placement = OutputPosition(begin: begin, ordinal: ordinal)
      }
    case .life(.abandon):
      abandons += 1
      outlived += running
      running = []
      untaken = [:]
      sending = []
      try expect(abandons == 1, "everything was abandoned twice")
    case .identify:
      try expect(
        settings.identifies && connection.canRenew || !connection.isOpen && connection.decides,
        "a client was identified")
      _ = connection.greeting?.takeCredential()
    case .life(.established), .life(.renewed), .life(.peerLeaving), .request(.finished), .observed,
      .resumeSending:
      break
    case .stream(.itemSent, let serial):
      try expect(sending.remove(serial) != nil, "an item was sent for which nobody waited")
    case .stream(.stuck, let serial): stuck(serial)
    case .stream(.overLimit, let serial): overLimit(serial)
    case .request(.stray(let kind, let serial)): stray(kind, serial)
    }
  }

  private func take(_ arrival: Arrival) throws(FuzzFailure) {
    switch arrival.kind {
    case .request:
      try expect(arrival.payload.count <= settings.maxBody, "a body over the limit")
      read(arrival)
      if try refuseOnce(arrival) { return }
      running.append((connection.id(of: arrival), arrival.byteCount))
    case .response:
      asked.removeAll { $0.serial == arrival.serial }
      forgetStream(arrival.serial)
      read(arrival)
      if arrival.code == .preconditionFailed { connection.learn(terms) }
    case .item:
      try expect(arrival.payload.count <= settings.maxBody, "an item over the limit")
      read(arrival)
      untaken[arrival.serial, default: []].append(arrival.cost)
    default:
      read(arrival)
    }
  }

  /// Reads every byte of a message, as whoever it is for would.
  private func read(_ arrival: Arrival) {
    if let slice = arrival.metadata {
      let metadata = connection.inbox.withBody(slice) { try? Metadata(decoding: $0) }
      precondition(metadata != nil, "malformed metadata was passed on")
    }
    _ = connection.inbox.takeBytes(of: arrival.payload)
  }

  /// The peer goes: whatever was under way, the connection comes to its end.
  func finish() throws(FuzzFailure) {
    connection.ended(at: now)
    try drain()
    // A client waits for the answer on a short link that has ended in good order: it goes as well.
    if connection.settings.isShort { connection.failed(.transport(104)) }
    try drain()
    var turns = 0
    while !connection.isClosed, turns < 1000 {
      write(.max)
      try drain()
      try pass(1_000_000_000)
      turns += 1
    }
    try expect(connection.isClosed, "a connection whose peer has gone does not end")
    try drain()
    returnHandlers()
    try judge()
    try expect(closes == 1 && abandons == 1, "the end was told \(closes) times")
  }
}
