// SPDX-License-Identifier: Apache-2.0

@testable import LongLinkCore

/// Connections in each phase, and what must hold of them.
final class PhaseWalker {
  let side: Side
  /// Each request has a serial of its own.
  private var requests: UInt32 = 0
  var abandons = 0
  var closes = 0
  var problems: [String] = []

  private let settings: ConnectionSettings
  private let frames: [PhaseInput: [UInt8]]
  private var inputs: [PhaseInput] = []

  init(_ settings: ConnectionSettings, _ frames: [PhaseInput: [UInt8]]) {
    self.settings = settings
    self.frames = frames
    side = Side(settings)
    side.delaysTurns = true
    if settings.dialect != nil {
      side.connection.connected(at: side.now)
      side.drain()
    }
    check([])
  }

  /// A walker that stands where another does, and goes its own way from there.
  convenience init(following other: PhaseWalker) {
    self.init(other.settings, other.frames)
    for input in other.inputs { apply(input) }
  }

  func apply(_ input: PhaseInput) {
    inputs.append(input)
    guard input.isAllowed(side.connection) else { return }
    let wasClosed = side.connection.isClosed
    let wasIdentifying = side.connection.phase == .identifying
    perform(input)
    side.drain()
    let events = side.takeEvents()
    if wasClosed, !events.isEmpty { problems.append("\(input) after the end: \(events)") }
    if side.connection.phase == .identifying, events.count != (wasIdentifying ? 0 : 1) {
      problems.append("\(input) is acted on before the client is accepted: \(events)")
    }
    check(events)
  }

  private func takeNumber() -> UInt32 {
    defer { requests += 1 }
    return requests
  }

  /// Ends the connection and returns its handlers: nothing of it may be left.
  func finish() {
    apply(.close)
    apply(.handlersReturn)
    if closes != 1 || abandons != 1 { problems.append("not once") }
    if side.connection.requestBytes != 0 { problems.append("it still holds requests") }
  }

  private func perform(_ input: PhaseInput) {
    if Speech.frames.contains(input) {
      if let frame = frames[input] { side.receive(frame) }
      return
    }
    let now = side.now
    switch input {
    case .ended: side.connection.ended(at: now)
    case .failed: side.connection.failed(.transport(104))
    case .failedSecurity: side.connection.failed(.securityFailed(.damaged))
    case .elapsedNow: side.elapse(to: now)
    case .elapsedToDeadline:
      if side.connection.deadline != .distantFuture { side.elapse(to: side.connection.deadline) }
    case .elapsedLong: side.elapse(to: now + 1_000_000_000_000)
    case .receivedPart: side.connection.receivedPart(at: now)
    case .slowed: side.connection.slowed(at: now)
    case .unslowed: side.connection.unslowed(after: 1_000_000)
    case .resumedReading: side.connection.resumedReading(at: now)
    case .wroteNothing: side.connection.wrote(0, at: now)
    case .wroteSome: side.connection.wrote(min(3, side.connection.outbox.chunk.count), at: now)
    case .wroteAll: side.flush()
    case .goawayDecoded: side.connection.received(goaway: GoAway(code: 503))
    case .ping: _ = side.connection.ping(at: now)
    case .probe: side.connection.probe(at: now, unacknowledged: 0)
    case .deadlineMissed: side.connection.deadlineMissed(at: now, unacknowledged: 0)
    case .quickenPace: side.connection.setPace(1_000_000_000)
    case .restorePace: side.connection.setPace(side.connection.agreement.heartbeatInterval)
    case .goAway:
      side.connection.goAway(
        code: .draining, reason: "", spread: 0, retryAfter: 0, alternatives: [])
    case .shutDown: side.connection.shutDown(at: now)
    case .close: side.connection.close(.closedHere)
    case .evict: side.connection.evict(at: now)
    case .releaseStorage:
      if side.connection.isIdle { HeldMemory.releaseStorage(of: &side.connection) }
    default: performExchange(input)
    }
  }

  private func performExchange(_ input: PhaseInput) {
    let (own, theirs): (UInt32, UInt32) =
      settings.role == .client ? (50, 0x8000_0032) : (0x8000_0032, 50)
    let isNative = settings.dialect == nil
    switch input {
    case .strayItem: side.connection.rejectStray(.item, serial: own)
    case .request: side.request(own + takeNumber())
    case .largeRequest:
      side.request(own + takeNumber(), [UInt8](repeating: 1, count: isNative ? 80_000 : 4_000))
    case .respond: side.respond(theirs)
    case .refuseLate: side.respond(theirs + 7, code: .failed, [1])
    case .setPriority: side.connection.inbound.setPriority(7, of: theirs)
    case .outlive: side.outlive(theirs)
    case .deafen: side.isDeaf = true
    case .handlersReturn: side.returnHandlers()
    case .handlersHadTurn: side.endTurn()
    case .push: side.push(pushType, [UInt8](repeating: 1, count: isNative ? 70_000 : 4_000))
    case .pushEncoded: pushEncoded(1)
    case .pushLargeEncoded: pushEncoded(isNative ? 70_000 : 4_000)
    case .cancelKnown:
      for serial in [own, Speech.stream(of: settings.role)] where side.placements[serial] != nil {
        _ = side.cancel(serial)
      }
    case .cancelUnknown: _ = side.connection.cancel(own + 9_999, .keptBack, notifying: true)
    case .abandonResponse: side.connection.abandonResponse(own)
    case .takeCredential:
      if side.connection.greeting?.takeCredential() != nil {
        problems.append("a credential comes twice")
      }
    case .admit: side.admit(expiresIn: 0)
    case .turnAway: side.turnAway(.unauthenticated)
    default: performStream(input)
    }
  }

  private func performStream(_ input: PhaseInput) {
    let own = Speech.stream(of: settings.role)
    let theirs = Speech.stream(of: settings.role.peer)
    switch input {
    case .openStream:
      if settings.isShort {
        // Its items go one way: this depends on where the input stands.
        let items = inputs.count.isMultiple(of: 2)
        side.stream(own, credit: items ? nil : 4_096, items: items)
      } else if !side.awaited.contains(own) {
        side.stream(own, credit: 4_096, items: true)
      }
    case .writeItem:
      let item = [UInt8](repeating: 1, count: takeNumber() % 2 == 0 ? 10 : 70_000)
      for serial in [own, theirs] where !side.sending.contains(serial) { side.write(serial, item) }
    case .endItems: side.endItems(own)
    case .takeItems: for serial in [own, theirs] { side.take(serial) }
    case .respondStream:
      side.respond(theirs, code: side.sending.contains(theirs) ? .failed : .ok)
    default: problems.append("\(input) is not performed")
    }
  }

  private var pushType: UInt32 { Speech.pushType(from: settings.role) }

  /// Sends a push as a broadcast does.
  private func pushEncoded(_ count: Int) {
    let body = [UInt8](repeating: 1, count: count)
    var outbox = Outbox(dialect: settings.dialect)
    let head = FrameHead(
      .push, tag: pushType, serial: Wire.plainPushSerial, length: count)
    outbox.encode(head) { span in body.encode(into: &span) }
    side.connection.push(
      MessageType(tag: pushType), body, encoded: outbox.takeEncoded())
  }

  private func check(_ events: [Event]) {
    for event in events {
      if closes > 0 { problems.append("\(event) behind close") }
      if event.isAbandon { abandons += 1 }
      if event.isClose {
        closes += 1
        if abandons != 1 { problems.append("close without abandon") }
      }
      if abandons > 0 { checkEnded(event) }
    }
    if abandons > 1 { problems.append("abandoned \(abandons) times") }
    checkState(side.connection)
  }

  private func checkState(_ connection: borrowing Connection) {
    if connection.isClosed != (closes == 1) {
      problems.append("closes \(closes) in \(connection.phase)")
    }
    if connection.isClosed, connection.deadline != .distantFuture {
      problems.append("a timer runs on")
    }
    if case .closing = connection.phase {
      if abandons != 1 { problems.append("closing unheard") }
      if connection.deadline == .distantFuture { problems.append("closing without an end") }
    }
    if connection.isOpen, connection.deadline == .distantFuture, !isAnsweredOrAsks(connection) {
      problems.append("no timer runs")
    }
    if connection.phase == .identifying, !connection.holdsReading { problems.append("it reads") }
    if case .closed = connection.phase, connection.inbound.count > 0 {
      problems.append("still runs")
    }
    if connection.inbound.outlived != side.outlived.count {
      problems.append("\(connection.inbound.outlived) outlived, not \(side.outlived.count)")
    }
  }

  /// Whether a short link needs no timer: its client has the request's deadline, and a server that
  /// has answered only writes, which is watched once a write finds no room.
  private func isAnsweredOrAsks(_ connection: borrowing Connection) -> Bool {
    settings.isShort && (settings.role == .client || connection.carriage.isAnswered)
  }

  private func checkEnded(_ event: Event) {
    switch event {
    case .abandon, .shutDownWriting, .close, .began, .finished, .dropped, .leaving, .itemSent:
      break
    default: problems.append("\(event) behind abandon")
    }
  }
}
