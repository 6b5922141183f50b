// SPDX-License-Identifier: Apache-2.0

@testable import LongLinkCore
import Testing

/// Something that happens to a connection: a fact, or a command.
private enum Input: CaseIterable {
  case frameHello, frameWelcome, frameRequest, frameSecondRequest, frameFragment, frameResponse
  case framePush, frameCancel, framePing, framePong, frameGoAway, frameItem, frameIgnored
  case frameUnknown, frameDamaged, frameHalf, emptyRead
  case ended, failed, elapsedNow, elapsedToDeadline, elapsedLong
  case resumedReading, wroteNothing, wroteSome, wroteAll
  case goawayDecoded, notDecoded
  case ping, request, largeRequest, respond, refuseLate, push, cancelKnown, cancelUnknown
  case goAway, shutDown, close, abandonResponse, releaseStorage

  static let frames = Dictionary(
    uniqueKeysWithValues: allCases.compactMap { input in input.makeFrame().map { (input, $0) } })

  private func makeFrame() -> [UInt8]? {
    switch self {
    case .frameHello: RawFrame(.hello, serial: 3, body: [0x10, 3]).bytes
    case .frameWelcome: RawFrame(.welcome, serial: 3, body: [0x10, 3]).bytes
    case .frameRequest: RawFrame(.request, tag: 1, serial: 50, body: [1]).bytes
    case .frameSecondRequest: RawFrame(.request, tag: 1, serial: 0x8000_0032).bytes
    case .frameFragment: RawFrame(.request, flags: .more, tag: 1, serial: 51, body: [1]).bytes
    case .frameResponse: RawFrame(.response, tag: 200, serial: 50, body: [1]).bytes
    case .framePush: RawFrame(.push, tag: 1, serial: 1, body: [1]).bytes
    case .frameCancel: RawFrame(.cancel, serial: 50).bytes
    case .framePing: RawFrame(.ping, body: [1]).bytes
    case .framePong: RawFrame(.pong, body: [0, 0, 0, 0, 0, 0, 0, 1]).bytes
    case .frameGoAway: RawFrame(.goaway, serial: 4, body: [0x08, 1]).bytes
    case .frameItem: RawFrame(.item, serial: 50).bytes
    case .frameIgnored: RawFrame(wire: 0x3A, body: [1]).bytes
    case .frameUnknown: RawFrame(wire: 0x1A, body: [1]).bytes
    case .frameDamaged: Array(RawFrame(.push, tag: 1, serial: 1, body: [1]).bytes.dropLast()) + [9]
    case .frameHalf: Array(RawFrame(.push, tag: 1, serial: 1, body: [1]).bytes.prefix(9))
    case .emptyRead: []
    default: nil
    }
  }

  /// Whether a driver may do it to a connection in this state: the documented preconditions.
  func isAllowed(_ connection: borrowing Connection) -> Bool {
    switch self {
    case .request, .largeRequest, .push: connection.isOpen
    default: true
    }
  }
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
  private var inputs: [Input] = []

  init(_ settings: ConnectionSettings) {
    self.settings = settings
    side = Side(settings)
    check([])
  }

  /// A walker that stands where another does, and goes its own way from there.
  convenience init(following other: Walker) {
    self.init(other.settings)
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

  private func perform(_ input: Input) {
    if let frame = Input.frames[input] {
      side.receive(frame)
      return
    }
    let own: UInt32 = side.connection.settings.role == .client ? 50 : 0x8000_0032
    let theirs: UInt32 = side.connection.settings.role == .client ? 0x8000_0032 : 50
    switch input {
    case .ended: side.connection.ended(at: side.now)
    case .failed: side.connection.failed(errno: 104)
    case .elapsedNow: side.elapse(to: side.now)
    case .elapsedToDeadline:
      if side.connection.deadline != .distantFuture { side.elapse(to: side.connection.deadline) }
    case .elapsedLong: side.elapse(to: side.now + 1_000_000_000_000)
    case .resumedReading: side.connection.resumedReading(at: side.now)
    case .wroteNothing: side.connection.wrote(0, at: side.now)
    case .wroteSome:
      side.connection.wrote(min(3, side.connection.outbox.chunk.count), at: side.now)
    case .wroteAll: side.flush()
    case .goawayDecoded: side.connection.received(goaway: GoAway(code: 503))
    case .notDecoded: side.connection.failed(toDecode: .goaway, serial: 4)
    case .ping: _ = side.connection.ping(at: side.now)
    case .request: side.request(own + takeNumber())
    case .largeRequest: side.request(own + takeNumber(), [UInt8](repeating: 1, count: 300_000))
    case .respond: side.respond(theirs)
    case .refuseLate: side.respond(theirs + 7, code: .failed, [1])
    case .push: side.push(1, [UInt8](repeating: 1, count: 70_000))
    case .cancelKnown: if side.placements[own] != nil { _ = side.cancel(own) }
    case .cancelUnknown: _ = side.connection.cancel(own + 9_999, .keptBack, notifying: true)
    case .goAway:
      side.connection.goAway(
        code: .draining, reason: "", spread: 0, retryAfter: 0, alternatives: [])
    case .shutDown: side.connection.shutDown(at: side.now)
    case .close: side.connection.close(.closedHere)
    case .abandonResponse: side.connection.abandonResponse(own)
    case .releaseStorage: if side.connection.isIdle { side.connection.releaseStorage() }
    default: problems.append("\(input) is not performed")
    }
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
  }

  private func checkEnded(_ event: Event) {
    switch event {
    case .abandon, .shutDownWriting, .close, .began, .finished, .dropped, .leaving: break
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

  @Test(arguments: [Role.client, .server])
  func `anything may happen in any phase`(role: Role) {
    for way in Self.ways {
      let begun = Walker(ConnectionSettings(role) { $0.encodeLimit = 100_000 })
      for input in way { begun.apply(input) }
      for first in Input.allCases {
        let next = Walker(following: begun)
        next.apply(first)
        for second in Input.allCases {
          let walker = Walker(following: next)
          walker.apply(second)
          walker.apply(.close)
          if walker.closes != 1 || walker.abandons != 1 { walker.problems.append("not once") }
          if !walker.problems.isEmpty {
            Issue.record("\(role): \(way) \(first) \(second): \(walker.problems)")
          }
        }
      }
    }
  }

  @Test(arguments: [Role.client, .server], 0..<150)
  func `long random sequences of events end once`(role: Role, seed: Int) {
    var dice = Seeded(UInt64(seed))
    let walker = Walker(ConnectionSettings(role) { $0.encodeLimit = 100_000 })
    walker.apply(role == .client ? .frameWelcome : .frameHello)
    var story: [Input] = []
    // What ends a connection at once is rare, so that the rest is seen in many orders.
    let ends: Set<Input> = [
      .frameUnknown, .frameDamaged, .frameItem, .frameHello, .frameWelcome, .failed, .close, .ended,
      .shutDown, .elapsedLong, .notDecoded, .frameHalf,
    ]
    for _ in 0..<120 {
      let input = Input.allCases[dice.below(Input.allCases.count)]
      if ends.contains(input), dice.below(30) > 0 { continue }
      story.append(input)
      walker.apply(input)
    }
    walker.apply(.close)
    #expect(walker.problems == [], "\(story)")
    #expect(walker.closes == 1 && walker.abandons == 1)
  }
}
