// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

/// What has come out of a connection, bodies included.
enum Event: Equatable {
  case established
  case identify([UInt8]?)
  case request(UInt32, type: UInt32, metadata: [UInt8]? = nil, body: [UInt8])
  case response(
    UInt32, code: UInt32, refused: Bool = false, metadata: [UInt8]? = nil, body: [UInt8])
  case push(type: UInt32, metadata: [UInt8]? = nil, body: [UInt8])
  case item(UInt32, body: [UInt8])
  case end(UInt32)
  case itemSent(UInt32)
  case overLimit(UInt32)
  case cancel(UInt32)
  case ponged(UInt64, roundTrip: Int64)
  case heartbeatAnswered(Int64)
  case began(UInt32, ordinal: UInt64)
  case finished(UInt32)
  case resumeSending
  case damaged(Violation)
  case refused(UInt32, type: UInt32, code: UInt32)
  case renewed(RenewalAnswer)
  case leaving(GoAway)
  case abandon(CloseReason)
  case shutDownWriting
  case close(CloseReason)
  case dropped(Drop)
}

/// What a connection reads, counts and forgets.
enum Drop: String {
  case ignoredKind
  case unsolicitedPong
  case unknownSerial
  case lateItem
  case lateEnd
  case lateCredit
}

/// One end of a connection: a connection, and what its driver would do for it, without any stream.
final class Side {
  var connection: Connection
  var now: LinkInstant
  var events: [Event] = []
  private var counted = ConnectionCounters()
  private var isDraining = false
  /// What was written and has not been taken yet.
  var wire: [UInt8] = []
  /// The end of the stream follows what was written.
  private(set) var hasEnded = false
  /// The peer takes nothing.
  var isStalled = false
  /// How much the stream takes before somebody takes it from there.
  var room = Int.max
  /// How many bytes have reached the peer's system; nil for all that were written.
  var arrived: Int?
  /// Requests are answered with their own body.
  var echoes = false
  /// The requests of this side that somebody waits for.
  var awaited: Set<UInt32> = []
  var placements: [UInt32: OutputPosition] = [:]
  /// The application takes each item as it comes; without it, `take` does.
  var takesItems = false
  /// The costs of the items that the application has not taken, by serial.
  var untaken: [UInt32: [Int]] = [:]
  /// Whether the application holds the items that it has not taken.
  var holdsItems = false
  /// Whether the application keeps the items of a stream that has ended.
  var keepsUnread = false
  /// The streams whose peer is stuck while items wait.
  var stuck: [UInt32] = []
  /// The streams of which an item waits for credit or room.
  var sending: Set<UInt32> = []
  /// Handlers go on when their requests are cancelled, until `returnHandlers` is called.
  var isDeaf = false
  /// The turn of handlers ends when `endTurn` is called.
  var delaysTurns = false
  /// The peer's requests that are not answered, and what each counts for.
  private(set) var running: [UInt32: InboundID] = [:]
  /// The running ones whose handlers go on after the answer.
  private var outliving: Set<UInt32> = []
  /// What the handlers count for that go on.
  private(set) var outlived: [InboundID] = []

  init(_ settings: ConnectionSettings, at now: LinkInstant = .start) {
    connection = Connection(settings: settings, at: now)
    self.now = now
    if settings.dialect == nil { connection.connected(at: now) }
    drain()
  }

  /// Whether nothing is on its way in or out.
  var isIdle: Bool {
    flush()
    return connection.isIdle
  }

  /// Takes what has happened since the last call.
  func takeEvents() -> [Event] {
    defer { events = [] }
    return events
  }

  func takeWire() -> [UInt8] {
    defer { wire = [] }
    return wire
  }

  /// The whole frames that were written since the last call.
  func takeFrames() -> [RawFrame] {
    flush()
    let (frames, consumed) = RawFrame.parse(wire)
    wire.removeFirst(consumed)
    return frames
  }

  /// The frames that wait to be written, which stay.
  func peekFrames() -> [RawFrame] {
    flush()
    return RawFrame.parse(wire).frames
  }

  func receive(_ bytes: [UInt8]) {
    unsafe connection.inbox.input.append(bytes.span.bytes)
    connection.received(bytes.count, at: now)
    drain()
  }

  func receive(_ frames: RawFrame...) {
    receive(frames.flatMap(\.bytes))
  }

  func receiveEnd() {
    connection.ended(at: now)
    flush()
    drain()
  }

  /// Bytes that were written and have not reached the peer's system.
  var unacknowledged: Int {
    arrived.map { max(0, Int(connection.counters.bytesSent) - $0) } ?? 0
  }

  func elapse(to instant: LinkInstant) {
    now = instant
    connection.elapsed(to: instant, unacknowledged: unacknowledged)
    drain()
  }

  /// Goes from deadline to deadline up to `instant`, writing after each.
  func pass(to instant: LinkInstant) {
    while connection.deadline <= instant {
      elapse(to: max(now, connection.deadline))
      flush()
    }
    elapse(to: instant)
    flush()
  }

  /// Writes what the connection wants to be written.
  func flush() {
    repeat {
      let chunk = connection.outbox.nextBytes
      let count = isStalled ? 0 : min(chunk.count, max(0, room - wire.count))
      let wasHolding = connection.holdsReading
      wire += chunk.prefix(count)
      connection.wrote(count, at: now)
      if wasHolding, !connection.holdsReading { connection.resumedReading(at: now) }
      drain()
    } while connection.wantsToWrite && !isStalled && wire.count < room && !connection.isClosed
  }

  func drain() {
    // Within a delivery, the outer one goes on.
    guard !isDraining else { return }
    isDraining = true
    while let effect = connection.nextStep() {
      noteDrops()
      perform(effect)
    }
    isDraining = false
    noteDrops()
    if connection.readHold.waitsForHandlers, !delaysTurns { endTurn() }
  }

  /// The handlers have had a turn, so that what waited for it is processed.
  func endTurn() {
    connection.readHold.handlersHadTurn()
    drain()
    connection.readHold.handlersTurnEnds()
  }

  private func noteDrops() {
    let counters = connection.counters
    note(.unsolicitedPong, counters.droppedPongs - counted.droppedPongs)
    note(.unknownSerial, counters.droppedUnknownSerials - counted.droppedUnknownSerials)
    note(.lateItem, counters.lateItems - counted.lateItems)
    note(.lateEnd, counters.lateEnds - counted.lateEnds)
    note(.lateCredit, counters.lateCredits - counted.lateCredits)
    note(.ignoredKind, counters.droppedIgnorable - counted.droppedIgnorable)
    counted = counters
  }

  private func note(_ reason: Drop, _ times: UInt64) {
    for _ in 0..<times { events.append(.dropped(reason)) }
  }

  private func perform(_ effect: Effect) {
    switch effect {
    case .message(let arrival): deliver(arrival)
    case .report(let news): hear(news)
    case .shutDownWriting:
      hasEnded = true
      events.append(.shutDownWriting)
    case .close(let reason):
      hasEnded = true
      events.append(.close(reason))
    }
  }

  private func hear(_ news: LinkNews) {
    switch news {
    case .life(.established): events.append(.established)
    case .identify: events.append(.identify(connection.greeting?.takeCredential()))
    case .cancel(let id):
      if let running = running.removeValue(forKey: id.serial) { outlived.append(running) }
      outliving.remove(id.serial)
      forgetStream(id.serial)
      if !isDeaf { returnHandlers() }
      events.append(.cancel(id.serial))
    case .request(.collect(let serial)):
      if !awaited.contains(serial) { connection.abandonResponse(serial) }
    case .observed(.ponged(let id, let roundTrip)): events.append(.ponged(id, roundTrip: roundTrip))
    case .resumeSending: events.append(.resumeSending)
    case .observed(.heartbeatAnswered(let silence)): events.append(.heartbeatAnswered(silence))
    case .request(.began(let serial, let begin, let ordinal)):
      placements[serial] = OutputPosition(begin: begin, ordinal: ordinal)
      events.append(.began(serial, ordinal: ordinal))
    case .request(.finished(let serial)): events.append(.finished(serial))
    case .stream(.itemSent, let serial):
      sending.remove(serial)
      events.append(.itemSent(serial))
    case .request(.stray(let kind, let serial)): hearStray(kind, serial)
    case .stream(.stuck, let serial): hearStuck(serial)
    case .stream(.overLimit, let serial): hearOverLimit(serial)
    case .observed(.damaged(let violation)): events.append(.damaged(violation))
    case .observed(.refused(let type, let serial, let refusal)):
      events.append(.refused(serial, type: type, code: refusal.code.rawValue))
    case .life(.renewed(let answer)): events.append(.renewed(answer))
    case .life(.peerLeaving(let goaway)): events.append(.leaving(goaway))
    case .life(.abandon(let reason)):
      outlived += running.values
      running = [:]
      outliving = []
      if !isDeaf { returnHandlers() }
      events.append(.abandon(reason))
    }
  }
}

extension Side {
  /// The handlers return that have gone on.
  func returnHandlers() {
    for id in outlived { connection.inbound.handlerReturned(from: id) }
    outlived = []
  }

  /// A request's handler goes on after its answer, until `returnHandlers` is called.
  func outlive(_ serial: UInt32) { outliving.insert(serial) }

  private func deliver(_ arrival: Arrival) {
    switch arrival.kind {
    case .request:
      deliverRequest(arrival)
    case .response:
      awaited.remove(arrival.serial)
      forgetStream(arrival.serial)
      events.append(
        .response(
          arrival.serial, code: arrival.code.rawValue, refused: arrival.isRefused,
          metadata: metadata(arrival), body: body(arrival)))
    case .item: deliverItem(arrival)
    case .end: events.append(.end(arrival.serial))
    default:
      events.append(.push(type: arrival.tag, metadata: metadata(arrival), body: body(arrival)))
    }
  }

  private func deliverRequest(_ arrival: Arrival) {
    running[arrival.serial] = connection.id(of: arrival)
    let (metadata, body) = (metadata(arrival), body(arrival))
    events.append(.request(arrival.serial, type: arrival.tag, metadata: metadata, body: body))
    if echoes { respond(arrival.serial, body) }
  }

  private func deliverItem(_ arrival: Arrival) {
    events.append(.item(arrival.serial, body: body(arrival)))
    untaken[arrival.serial, default: []].append(arrival.cost)
    if takesItems { take(arrival.serial) }
  }

  private func body(_ arrival: Arrival) -> [UInt8] {
    connection.inbox.takeBytes(of: arrival.payload)
  }

  /// The metadata block; nil where there is none.
  private func metadata(_ arrival: Arrival) -> [UInt8]? {
    arrival.metadata.map { slice in connection.inbox.withBody(slice) { [UInt8](decoding: $0) } }
  }

  @discardableResult
  func request(
    _ serial: UInt32, type: UInt32 = 1, metadata: [UInt8]? = nil, priority: UInt32 = 0,
    stream: StreamTerms? = nil, _ body: [UInt8] = []
  ) -> OutputPosition {
    awaited.insert(serial)
    // Bytes are encoded without fail.
    let placement = try! connection.request(
      serial, type: MessageType(tag: type), metadata: metadata.map(MetadataBlock.init),
      priority: priority, count: body.count, stream: stream, at: now
    ) { span in body.encode(into: &span) }
    placements[serial] = placement
    drain()
    return placements[serial]!
  }

  @discardableResult
  func respond(
    _ serial: UInt32, code: ResponseCode = .ok, refused: Bool = false, metadata: [UInt8]? = nil,
    _ body: [UInt8] = []
  ) -> Bool {
    let id = running[serial] ?? InboundID(serial: serial, number: 0)
    let isOutlived = outliving.remove(serial) != nil
    let isOwed = connection.respond(
      id, code: code, isRefused: refused, isInterrupting: isOutlived,
      metadata: metadata.map(MetadataBlock.init), body)
    if isOwed {
      running[serial] = nil
      if isOutlived { outlived.append(id) }
      forgetStream(serial)
    }
    drain()
    return isOwed
  }

  func push(_ type: UInt32, metadata: [UInt8]? = nil, _ body: [UInt8] = []) {
    connection.push(
      MessageType(tag: type), metadata: metadata.map(MetadataBlock.init), count: body.count, at: now
    ) { span in
      body.encode(into: &span)
    }
    drain()
  }

  /// Cancels as the table of requests would, and says whether no byte had left.
  func cancel(_ serial: UInt32, notifying: Bool = true) -> Bool {
    awaited.remove(serial)
    let isUnsent = connection.cancel(serial, placements[serial]!, notifying: notifying)
    forgetStream(serial)
    drain()
    return isUnsent
  }
}

extension Connection {
  /// The next message or effect, in their order.
  mutating func nextStep() -> Effect? {
    if let message = nextMessage() { return .message(message) }
    return nextEffect()
  }
}

extension LinkInstant {
  /// Where the tests' time begins.
  static let start = LinkInstant(nanoseconds: 1_000_000_000_000)

  /// So many milliseconds after the beginning.
  static func ms(_ milliseconds: Int64) -> LinkInstant {
    start + milliseconds * 1_000_000
  }
}

extension ConnectionSettings {
  init(_ role: Role, _ change: (inout ConnectionSettings) -> Void = { _ in }) {
    self.init(role: role)
    change(&self)
  }
}
