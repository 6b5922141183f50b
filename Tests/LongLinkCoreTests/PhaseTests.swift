// SPDX-License-Identifier: Apache-2.0

@testable import LongLinkCore
import LongLinkDialects
import Testing

/// Something that happens to a connection: a fact, or a command.
private enum Input: CaseIterable {
  case frameHello, frameWelcome, frameRequest, frameSecondRequest, frameFragment, frameResponse
  case framePush, frameCancel, framePing, framePong, frameGoAway, frameItem, frameIgnored
  case frameUnknown, frameDamaged, frameHalf, emptyRead
  case ended, failed, elapsedNow, elapsedToDeadline, elapsedLong
  case resumedReading, wroteNothing, wroteSome, wroteAll
  case goawayDecoded, strayItem
  case ping, request, largeRequest, respond, refuseLate, push, cancelKnown, cancelUnknown
  case goAway, shutDown, close, abandonResponse, releaseStorage
  case evict, probe, deadlineMissed, quickenPace, restorePace, setPriority
  case outlive, deafen, handlersReturn, pushEncoded, pushLargeEncoded
  case frameStream, frameStreamItem, frameStreamPart, frameStreamEnd, frameStreamCredit
  case frameOwnItem, openStream, writeItem, endItems, takeItems, respondStream

  /// Whether a driver may do it to a connection in this state: the documented preconditions.
  func isAllowed(_ connection: borrowing Connection) -> Bool {
    switch self {
    case .request, .largeRequest, .push, .pushEncoded, .pushLargeEncoded: connection.isOpen
    // A dialect has no goaway that could be decoded.
    case .goawayDecoded, .strayItem: connection.isNative
    case .openStream: connection.isOpen && connection.agreement.features.contains(.streams)
    default: true
    }
  }
}

/// The protocol that a connection speaks.
enum Speech: CaseIterable {
  case native
  case dialect

  private static let small = Result { try FrameDialect.small(maximumBody: 4_000) }

  func settings(_ role: Role) throws -> ConnectionSettings {
    let framing: DialectCodec? =
      self == .native ? nil : try DialectCodec(Self.small.get(), role: role, session: [])
    return ConnectionSettings(role) {
      $0.dialect = framing
      $0.encodeLimit = self == .native ? 100_000 : 6_000
      $0.missedDeadlines = 1
    }
  }

  /// The frames that a connection in this role may get.
  fileprivate func frames(to role: Role) throws -> [Input: [UInt8]] {
    guard self == .native else { return try Speech.dialectFrames(to: role) }
    return Speech.nativeFrames.merging(Speech.streamFrames(to: role)) { first, _ in first }
  }

  /// The inputs that are frames in one of the protocols.
  fileprivate static let frames = Set(nativeFrames.keys).union(streamFrames(to: .client).keys)

  private static let nativeFrames: [Input: [UInt8]] = [
    .frameHello: RawFrame(.hello, serial: 3, body: [0x10, 7]).bytes,
    .frameWelcome: RawFrame(.welcome, serial: 3, body: [0x10, 7]).bytes,
    .frameRequest: RawFrame(.request, tag: 1, serial: 50, body: [1]).bytes,
    .frameSecondRequest: RawFrame(.request, tag: 1, serial: 0x8000_0032).bytes,
    .frameFragment: RawFrame(.request, flags: .more, tag: 1, serial: 51, body: [1]).bytes,
    .frameResponse: RawFrame(.response, tag: 200, serial: 50, body: [1]).bytes,
    .framePush: RawFrame(.push, tag: 1, serial: 1, body: [1]).bytes,
    .frameCancel: RawFrame(.cancel, serial: 50).bytes,
    .framePing: RawFrame(.ping, body: [1]).bytes,
    .framePong: RawFrame(.pong, body: [0, 0, 0, 0, 0, 0, 0, 1]).bytes,
    .frameGoAway: RawFrame(.goaway, serial: 4, body: [0x08, 1]).bytes,
    .frameItem: RawFrame(.item, serial: 50).bytes,
    .frameIgnored: RawFrame(wire: 0x3A, body: [1]).bytes,
    .frameUnknown: RawFrame(wire: 0x1A, body: [1]).bytes,
    .frameDamaged: Array(RawFrame(.push, tag: 1, serial: 1, body: [1]).bytes.dropLast()) + [9],
    .frameHalf: Array(RawFrame(.push, tag: 1, serial: 1, body: [1]).bytes.prefix(9)),
    .emptyRead: [],
  ]

  /// The serial of the one stream that each side opens.
  static func stream(of role: Role) -> UInt32 { role == .client ? 5_000 : 0x8000_1388 }

  private static func streamFrames(to role: Role) -> [Input: [UInt8]] {
    let serial = stream(of: role.peer)
    let metadata: [UInt8] = [0, 5, 0x30, 0x80, 0x20, 0x38, 1]
    return [
      .frameStream: RawFrame(.request, flags: .metadata, tag: 1, serial: serial, body: metadata)
        .bytes,
      .frameStreamItem: RawFrame(.item, serial: serial, body: [1, 2]).bytes,
      .frameStreamPart: RawFrame(.item, flags: .more, serial: serial, body: [3]).bytes,
      .frameStreamEnd: RawFrame(.end, serial: serial).bytes,
      .frameStreamCredit: RawFrame(.credit, serial: serial, body: [0, 0, 16, 0]).bytes,
      .frameOwnItem: RawFrame(.item, serial: stream(of: role), body: [4]).bytes,
    ]
  }

  /// A dialect has no handshake, no fragments and no goaway.
  private static func dialectFrames(to role: Role) throws -> [Input: [UInt8]] {
    let peer = try DialectSide(small.get(), role == .client ? .server : .client)
    let (theirs, ours): (UInt32, UInt32) =
      role == .client ? (0x8000_0032, 50) : (50, 0x8000_0032)
    let push = peer.push(Speech.pushType(from: role == .client ? .server : .client), [1])
    var frames: [Input: [UInt8]] = [
      .frameRequest: peer.request(1, theirs, [1]),
      .frameSecondRequest: peer.request(1, theirs + 1),
      .frameResponse: peer.response(.ok, ours, to: 1, [1]),
      .framePush: push,
      .frameCancel: peer.cancel(theirs, of: 1),
      .frameUnknown: peer.response(.ok, ours + 5_000, to: 1),
      .frameDamaged: push.dropLast() + [9],
      .frameHalf: Array(push.prefix(9)),
      .emptyRead: [],
    ]
    // Clients send pings.
    frames[role == .client ? .framePong : .framePing] =
      role == .client ? peer.pong(1) : peer.ping(1)
    return frames
  }

  /// A type that a push of this side can have.
  static func pushType(from role: Role) -> UInt32 { role == .client ? 0xF100 : 0xF000 }
}

/// Connections in each phase, and what must hold of them.
private final class Walker {
  let side: Side
  /// Each request has a serial of its own.
  private var requests: UInt32 = 0
  var abandons = 0
  var closes = 0
  var problems: [String] = []

  private let settings: ConnectionSettings
  private let frames: [Input: [UInt8]]
  private var inputs: [Input] = []

  init(_ settings: ConnectionSettings, _ frames: [Input: [UInt8]]) {
    self.settings = settings
    self.frames = frames
    side = Side(settings)
    if settings.dialect != nil {
      side.connection.connected(at: side.now)
      side.drain()
    }
    check([])
  }

  /// A walker that stands where another does, and goes its own way from there.
  convenience init(following other: Walker) {
    self.init(other.settings, other.frames)
    for input in other.inputs { apply(input) }
  }

  func apply(_ input: Input) {
    inputs.append(input)
    guard input.isAllowed(side.connection) else { return }
    let wasClosed = side.connection.isClosed
    perform(input)
    side.drain()
    let events = side.takeEvents()
    if wasClosed, !events.isEmpty { problems.append("\(input) after the end: \(events)") }
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

  private func perform(_ input: Input) {
    if Speech.frames.contains(input) {
      if let frame = frames[input] { side.receive(frame) }
      return
    }
    let now = side.now
    switch input {
    case .ended: side.connection.ended(at: now)
    case .failed: side.connection.failed(errno: 104)
    case .elapsedNow: side.elapse(to: now)
    case .elapsedToDeadline:
      if side.connection.deadline != .distantFuture { side.elapse(to: side.connection.deadline) }
    case .elapsedLong: side.elapse(to: now + 1_000_000_000_000)
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
    case .releaseStorage: if side.connection.isIdle { side.connection.releaseStorage() }
    default: performExchange(input)
    }
  }

  private func performExchange(_ input: Input) {
    let (own, theirs): (UInt32, UInt32) =
      settings.role == .client ? (50, 0x8000_0032) : (0x8000_0032, 50)
    let isNative = settings.dialect == nil
    switch input {
    case .strayItem: side.connection.rejectStray(.item, serial: own)
    case .request: side.request(own + takeNumber())
    case .largeRequest:
      side.request(own + takeNumber(), [UInt8](repeating: 1, count: isNative ? 150_000 : 4_000))
    case .respond: side.respond(theirs)
    case .refuseLate: side.respond(theirs + 7, code: .failed, [1])
    case .setPriority: side.connection.setPriority(7, of: theirs)
    case .outlive: side.outlive(theirs)
    case .deafen: side.isDeaf = true
    case .handlersReturn: side.returnHandlers()
    case .push: side.push(pushType, [UInt8](repeating: 1, count: isNative ? 70_000 : 4_000))
    case .pushEncoded: pushEncoded(1)
    case .pushLargeEncoded: pushEncoded(isNative ? 70_000 : 4_000)
    case .cancelKnown:
      for serial in [own, Speech.stream(of: settings.role)] where side.placements[serial] != nil {
        _ = side.cancel(serial)
      }
    case .cancelUnknown: _ = side.connection.cancel(own + 9_999, .keptBack, notifying: true)
    case .abandonResponse: side.connection.abandonResponse(own)
    default: performStream(input)
    }
  }

  private func performStream(_ input: Input) {
    let own = Speech.stream(of: settings.role)
    let theirs = Speech.stream(of: settings.role.peer)
    switch input {
    case .openStream:
      if !side.awaited.contains(own) { side.stream(own, credit: 4_096, items: true) }
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
    if case .closing = connection.phase, abandons != 1 { problems.append("closing unheard") }
    if connection.isOpen, connection.deadline == .distantFuture { problems.append("no timer runs") }
    if case .closed = connection.phase, connection.requestsRunning > 0 {
      problems.append("still runs")
    }
    if connection.requestsOutlived != side.outlived.count {
      problems.append("\(connection.requestsOutlived) outlived, not \(side.outlived.count)")
    }
  }

  private func checkEnded(_ event: Event) {
    switch event {
    case .abandon, .shutDownWriting, .close, .began, .finished, .dropped, .leaving, .itemSent:
      break
    default: problems.append("\(event) behind abandon")
    }
  }
}

@Suite struct PhaseTests {
  /// Ways into each phase.
  private static let ways: [[Input]] = [
    [],
    [.frameHello], [.frameWelcome], [.frameRequest], [.framePing],
    [.frameHello, .frameRequest], [.frameHello, .frameFragment], [.frameHello, .frameHalf],
    [.frameWelcome, .frameSecondRequest], [.frameWelcome, .request],
    [.frameWelcome, .largeRequest],
    [.frameWelcome, .push, .push, .wroteSome], [.frameHello, .push, .push, .wroteSome],
    [.frameHello, .elapsedToDeadline], [.frameWelcome, .frameGoAway],
    [.frameHello, .goAway], [.frameHello, .goAway, .frameRequest],
    [.frameHello, .frameRequest, .outlive, .respond],
    [.frameHello, .deafen, .frameRequest, .frameCancel], [.frameHello, .frameRequest, .evict],
    [.frameHello, .frameStream], [.frameWelcome, .frameStream, .frameStreamPart, .writeItem],
    [.frameHello, .openStream, .writeItem, .wroteSome], [.frameWelcome, .openStream, .endItems],
    [.frameUnknown], [.frameWelcome, .frameDamaged], [.frameHello, .frameUnknown, .wroteAll],
    [.shutDown], [.frameWelcome, .shutDown, .wroteAll], [.frameHello, .frameRequest, .shutDown],
    [.close], [.frameHello, .ended], [.frameWelcome, .failed], [.elapsedLong],
  ]

  @Test func `a phase is followed only by later ones`() {
    let phases: [Connection.Phase] = [.fresh, .open, .closing(.closedHere), .closed(.closedHere)]
    for (place, phase) in phases.enumerated() {
      for (nextPlace, next) in phases.enumerated() {
        #expect(phase.canBecome(next) == (nextPlace > place), "\(phase) to \(next)")
      }
    }
  }

  /// Ways into each phase of a connection that speaks a dialect.
  private static let dialectWays: [[Input]] = [
    [], [.frameRequest], [.framePing], [.frameHalf], [.request, .wroteAll], [.largeRequest],
    [.push, .push, .wroteSome], [.elapsedToDeadline], [.goAway, .frameRequest],
    [.frameRequest, .outlive, .respond], [.deafen, .frameRequest, .frameCancel],
    [.frameUnknown], [.shutDown, .wroteAll], [.frameRequest, .shutDown], [.close], [.failed],
  ]

  @Test(arguments: [Role.client, .server], Speech.allCases)
  func `anything may happen in any phase`(role: Role, speech: Speech) throws {
    let settings = try speech.settings(role)
    let frames = try speech.frames(to: role)
    let inputs = Input.allCases.filter { !Speech.frames.contains($0) || frames[$0] != nil }
    for way in speech == .native ? Self.ways : Self.dialectWays {
      let begun = Walker(settings, frames)
      for input in way { begun.apply(input) }
      for first in inputs {
        let next = Walker(following: begun)
        next.apply(first)
        for second in inputs {
          let walker = Walker(following: next)
          walker.apply(second)
          walker.finish()
          if !walker.problems.isEmpty {
            Issue.record("\(role), \(speech): \(way) \(first) \(second): \(walker.problems)")
          }
        }
      }
    }
  }

  @Test(arguments: [Role.client, .server], 0..<200)
  func `long random sequences of events end once`(role: Role, seed: Int) throws {
    let speech: Speech = seed % 4 == 3 ? .dialect : .native
    var dice = Seeded(UInt64(seed))
    let walker = try Walker(speech.settings(role), speech.frames(to: role))
    walker.apply(role == .client ? .frameWelcome : .frameHello)
    var story: [Input] = []
    // What ends a connection at once is rare, so that the rest is seen in many orders.
    let ends: Set<Input> = [
      .frameUnknown, .frameDamaged, .frameItem, .frameHello, .frameWelcome, .failed, .close, .ended,
      .shutDown, .elapsedLong, .strayItem, .frameHalf, .evict, .frameStreamEnd,
    ]
    for _ in 0..<120 {
      let input = Input.allCases[dice.below(Input.allCases.count)]
      if ends.contains(input), dice.below(30) > 0 { continue }
      story.append(input)
      walker.apply(input)
    }
    walker.finish()
    #expect(walker.problems == [], "\(speech): \(story)")
  }
}
