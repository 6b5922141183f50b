// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// What a peer does to break a rule, and what is known of it.
struct Breach: Sendable, CustomTestStringConvertible {
  var rule: Violation.Rule
  /// The receiver's role.
  var role = Role.server
  var isFresh = false
  var features = Features.supported.subtracting(.once)
  var maxBody = 1000
  /// Frames that break nothing.
  var before: [[UInt8]] = []
  /// Whether the receiver has sent a request that announces items.
  var asks = false
  /// The frame that does.
  var breach: [UInt8]
  /// How much of `breach` is enough to tell; nil for all of it.
  var tells: Int?

  var testDescription: String { "\(rule) by \(breach.prefix(20))" }

  func makeSide() -> Side {
    let side =
      isFresh
      ? Side(ConnectionSettings(role) { $0.maxBody = maxBody })
      : opened(role, features: features) { $0.maxBody = maxBody }
    if asks { side.stream(50, items: true) }
    _ = side.takeFrames()
    _ = side.takeEvents()
    return side
  }
}

extension Breach {
  private static func header(
    _ rule: Violation.Rule, _ frame: RawFrame, length: UInt32? = nil, role: Role = .server,
    isFresh: Bool = false, features: Features = .supported.subtracting(.once)
  ) -> Breach {
    var bytes = frame.bytes
    if let length { bytes = frame.headerBytes(length: length) }
    return Breach(
      rule: rule, role: role, isFresh: isFresh, features: features, breach: bytes, tells: 16)
  }

  private static func damaged(_ frame: RawFrame, at index: Int) -> [UInt8] {
    var bytes = frame.bytes
    bytes[index] ^= 1
    return bytes
  }

  private static let plain: Features = [.metadata, .fragments]

  static let all: [Breach] = ofMessages + ofStreams

  private static let ofMessages: [Breach] = [
    Breach(
      rule: .checksumMismatch,
      breach: damaged(RawFrame(.request, tag: 1, serial: 50, body: [1]), at: 16)),
    Breach(rule: .checksumMismatch, breach: damaged(RawFrame(.ping), at: 12)),
    Breach(rule: .checksumMismatch, breach: damaged(RawFrame(wire: 0x3F, body: [1, 2]), at: 17)),
    header(.lengthOverLimit, RawFrame(.request, tag: 1, serial: 50), length: 1001),
    header(.lengthOverLimit, RawFrame(.push, tag: 1, serial: 1), length: .max, role: .client),
    header(.lengthOverLimit, RawFrame(wire: 0x30), length: 1001),
    header(.lengthOverLimit, RawFrame(.goaway, serial: 4), length: 65_537),
    header(.lengthOverLimit, RawFrame(.hello, serial: 3), length: 65_537, isFresh: true),
    header(.unknownKind, RawFrame(wire: 0x0D, serial: 50)),
    header(.unknownKind, RawFrame(wire: 0x2F, serial: 0), length: .max),
    header(.kindNotAgreed, RawFrame(.item, serial: 50), features: plain),
    header(.kindNotAgreed, RawFrame(.end, serial: 50), features: plain),
    header(.kindNotAgreed, RawFrame(.credit, serial: 50), length: 4, features: plain),
    header(.kindNotAgreed, RawFrame(.renewal), length: 8, features: plain),
    header(
      .kindNotAgreed, RawFrame(.renewal, tag: 200), length: 0, role: .client, features: plain),
    header(.sizeNotAllowed, RawFrame(.renewal, tag: 200), length: 65_537, role: .client),
    header(.serialOutOfRange, RawFrame(.push, tag: 1, serial: 2), length: 9),
    header(.flagNotAllowed, RawFrame(.ping, flags: .more)),
    header(.flagNotAllowed, RawFrame(.cancel, flags: .metadata, serial: 50)),
    header(.flagNotAllowed, RawFrame(.goaway, flags: .more, serial: 4)),
    header(
      .flagNotAllowed, RawFrame(.request, flags: .metadata, serial: 50), length: 2,
      features: .fragments),
    header(
      .flagNotAllowed, RawFrame(.request, flags: .more, serial: 50), length: 2,
      features: .metadata),
    header(.flagNotAllowed, RawFrame(.request, flags: .more, serial: 50), length: 2, isFresh: true),
    header(.tagNotAllowed, RawFrame(.pong, tag: 1)),
    header(.tagNotAllowed, RawFrame(.cancel, tag: 1, serial: 50)),
    header(.tagNotAllowed, RawFrame(.response, tag: 0x80_00C8, serial: 50), role: .client),
    header(.sizeNotAllowed, RawFrame(.cancel, serial: 50), length: 1),
    header(.sizeNotAllowed, RawFrame(.ping), length: 65),
    header(.sizeNotAllowed, RawFrame(.request, flags: .more, serial: 50), length: 0),
    header(.flagNotAllowed, RawFrame(.item, flags: .metadata, serial: 50), length: 2),
    header(.tagNotAllowed, RawFrame(.end, tag: 1, serial: 50)),
    header(.sizeNotAllowed, RawFrame(.credit, serial: 50), length: 5),
    header(.serialOutOfRange, RawFrame(.item, serial: 49)),
    header(.serialOutOfRange, RawFrame(.request, serial: 49)),
    header(.serialOutOfRange, RawFrame(.request, serial: 0x8000_0032)),
    header(.serialOutOfRange, RawFrame(.request, serial: 50), role: .client),
    header(.serialOutOfRange, RawFrame(.response, tag: 200, serial: 50)),
    header(.serialOutOfRange, RawFrame(.push, serial: 3)),
    header(.serialOutOfRange, RawFrame(.pong, serial: 1)),
    header(.serialOutOfRange, RawFrame(.goaway, serial: 3)),
    Breach(
      rule: .serialInUse, before: [RawFrame(.request, tag: 1, serial: 50).bytes],
      breach: RawFrame(.request, tag: 1, serial: 50).bytes),
    Breach(
      rule: .serialInUse, before: [RawFrame(.request, tag: 1, serial: 50).bytes],
      breach: RawFrame(.request, flags: .more, tag: 1, serial: 50, body: [1]).bytes),
    Breach(
      rule: .metadataTooLong,
      breach: RawFrame(.request, flags: .metadata, serial: 50, body: [0, 2, 1]).bytes),
    header(.metadataTooLong, RawFrame(.push, flags: .metadata, serial: 1), length: 1),
    Breach(
      rule: .malformedControl,
      breach: RawFrame(.request, flags: .metadata, serial: 50, body: [0, 1, 0xFF]).bytes),
    Breach(rule: .malformedControl, breach: RawFrame(.goaway, serial: 4, body: [0x12, 9]).bytes),
    Breach(
      rule: .malformedControl, isFresh: true,
      breach: RawFrame(.hello, serial: 3, body: [0x42, 9]).bytes),
    Breach(
      rule: .malformedControl, role: .client, isFresh: true,
      breach: RawFrame(.welcome, serial: 3, body: [0x4A, 9]).bytes),
    Breach(
      rule: .helloNotFirst, isFresh: true, before: [RawFrame(.ping).bytes],
      breach: RawFrame(.hello, serial: 3).bytes),
    Breach(rule: .unexpectedHello, breach: RawFrame(.hello, serial: 3).bytes),
    Breach(rule: .unexpectedHello, role: .client, breach: RawFrame(.hello, serial: 3).bytes),
    Breach(rule: .unexpectedWelcome, breach: RawFrame(.welcome, serial: 3).bytes),
    Breach(rule: .unexpectedWelcome, role: .client, breach: RawFrame(.welcome, serial: 3).bytes),
    Breach(
      rule: .featureNotOffered, role: .client, isFresh: true,
      breach: RawFrame(.welcome, serial: 3, body: [0x10, 4]).bytes),
    Breach(
      rule: .versionNotOffered, role: .client, isFresh: true,
      breach: RawFrame(.welcome, serial: 3, body: [0x08, 2]).bytes),
    Breach(
      rule: .fragmentMismatch,
      before: [RawFrame(.request, flags: .more, tag: 1, serial: 50, body: [1]).bytes],
      breach: RawFrame(.request, tag: 2, serial: 50, body: [1]).bytes),
    Breach(
      rule: .fragmentMismatch,
      before: [RawFrame(.request, flags: .more, tag: 1, serial: 50, body: [1]).bytes],
      breach: RawFrame(.request, flags: .metadata, tag: 1, serial: 50, body: [0, 0]).bytes),
    Breach(
      rule: .tooManyPings, before: Array(repeating: RawFrame(.ping).bytes, count: 100),
      breach: RawFrame(.ping).bytes),
  ]

  /// A request that asks for items and announces some.
  private static let opening = RawFrame(
    .request, flags: .metadata, tag: 1, serial: 50, body: [0, 4, 0x30, 100, 0x38, 1]
  ).bytes
  private static let end = RawFrame(.end, serial: 50).bytes
  private static let half = RawFrame(.item, flags: .more, serial: 50, body: [1]).bytes
  private static func credit(_ bytes: [UInt8]) -> [UInt8] {
    RawFrame(.credit, serial: 50, body: bytes).bytes
  }

  private static let ofStreams: [Breach] = [
    Breach(
      rule: .itemNotExpected, before: [RawFrame(.request, tag: 1, serial: 50).bytes],
      breach: RawFrame(.item, serial: 50).bytes),
    Breach(rule: .itemAfterEnd, before: [opening, end], breach: end),
    Breach(rule: .itemCutOff, before: [opening, half], breach: end),
    Breach(rule: .creditNotAllowed, before: [opening], breach: credit([0, 0, 0, 0])),
    Breach(rule: .creditOverflow, before: [opening], breach: credit([0x7F, 0xFF, 0xFF, 0xFF])),
    Breach(
      rule: .creditExceeded, maxBody: 100_000, before: [opening],
      breach: RawFrame(.item, serial: 50, body: [UInt8](repeating: 1, count: 65_521)).bytes),
    Breach(
      rule: .refusedAfterItems, role: .client,
      before: [credit([0, 0, 0, 1])], asks: true,
      breach: RawFrame(.response, tag: 0x80_0194, serial: 50).bytes),
  ]

  static let code: [Violation.Rule: UInt32] = [
    .lengthOverLimit: 413, .tooManyPings: 429, .frameTimeout: 408, .firstFrameTimeout: 408,
  ]
}

@Suite struct ViolationTests {
  /// Those that take time, or the end of the stream, have tests of their own below.
  static let timed: Set<Violation.Rule> = [.frameTimeout, .firstFrameTimeout, .truncatedFrame]

  @Test func `every rule is broken by something`() {
    let native = Set(Violation.Rule.allCases).subtracting(Violation.Rule.ofDialects)
    #expect(Set(Breach.all.map(\.rule)).union(Self.timed) == native)
  }

  @Test(arguments: Breach.all, Cutting.allCases)
  func `a broken rule ends the connection in order`(breach: Breach, cutting: Cutting) throws {
    let side = breach.makeSide()
    for bytes in breach.before { give(bytes, to: side, cutting) }
    #expect(side.connection.isOpen || breach.isFresh)
    _ = side.takeFrames()
    _ = side.takeEvents()
    // Whatever stands behind the breach is not looked at.
    let behind = RawFrame(.push, tag: 1, serial: 1, body: [1]).bytes
    give(breach.breach.prefix(breach.tells ?? .max) + behind, to: side, cutting)

    let events = side.takeEvents()
    guard events.count == 1, case .abandon(.violation(let violation)) = events[0] else {
      Issue.record("\(events)")
      return
    }
    let frames = side.takeFrames()
    #expect(frames.map(\.kind) == [FrameKind.goaway.rawValue])
    let goaway: GoAway = try frames[0].decoded()
    #expect(violation.rule == breach.rule)
    #expect(goaway.code == Breach.code[breach.rule] ?? 400)
    #expect(goaway.reason == violation.description)

    #expect(side.takeEvents() == [.shutDownWriting])
    side.receive(behind)
    #expect(side.takeEvents() == [])
    side.receiveEnd()
    #expect(side.takeEvents() == [.close(.violation(violation))])
    side.receive(behind)
    side.pass(to: .ms(100_000))
    #expect(side.takeEvents() == [])
    #expect(side.takeFrames() == [])
  }

  @Test(arguments: Breach.all.filter { $0.tells != nil })
  func `a bad header is found with its last byte and not before`(breach: Breach) {
    let side = breach.makeSide()
    side.receive(Array(breach.breach.prefix(15)))
    #expect(side.takeEvents() == [])
    side.receive([breach.breach[15]])
    #expect(side.takeEvents().count == 1)
  }

  @Test func `the goaway is written before the stream is ended, however slowly it leaves`() {
    let side = opened(.server)
    side.isStalled = true
    side.receive(RawFrame(wire: 0x20))
    side.flush()
    side.flush()
    #expect(!side.takeEvents().contains(.shutDownWriting))
    side.isStalled = false
    #expect(side.takeFrames().map(\.kind) == [FrameKind.goaway.rawValue])
    #expect(side.takeEvents() == [.shutDownWriting])
  }

  @Test func `bytes that arrive while a connection closes are read and dropped`() {
    let violated = opened(.server)
    violated.receive(RawFrame(wire: 0x20))
    let late = opened(.server)
    late.connection.rejectStray(.item, serial: Role.server.serials.lowerBound)
    let shut = opened(.server)
    shut.connection.shutDown(at: .start)
    for side in [violated, late, shut] {
      for _ in 0..<16 {
        side.receive([UInt8](repeating: 7, count: 65_536))
        #expect(side.connection.inbox.input.isEmpty == true)
      }
    }
  }

  @Test func `a peer that never ends its side is left after a second`() {
    let side = opened(.server)
    side.pass(to: .ms(500))
    side.receive(RawFrame(wire: 0x20))
    side.flush()
    _ = side.takeEvents()
    side.pass(to: .ms(1499))
    #expect(side.takeEvents() == [])
    side.pass(to: .ms(1500))
    guard case .close(.violation) = side.takeEvents().first else {
      Issue.record("still open")
      return
    }
    #expect(side.connection.deadline == .distantFuture)
  }

  @Test func `fragments that wait to be sent are dropped for the goaway`() {
    let side = opened(.client)
    side.isStalled = true
    side.request(50, [UInt8](repeating: 1, count: 3_000_000))
    side.receive(RawFrame(wire: 0x20))
    side.isStalled = false
    let frames = side.takeFrames()
    #expect(frames.last?.kind == FrameKind.goaway.rawValue)
    #expect(frames.count < 10)
  }

  @Test(arguments: [Role.client, .server])
  func `the end of the stream within a frame is damage`(role: Role) {
    for length in 1..<20 {
      let side = opened(role)
      side.receive(
        Array(RawFrame(.push, tag: 1, serial: 1, body: [1, 2, 3, 4]).bytes.prefix(length)))
      side.receiveEnd()
      let reason = CloseReason.violation(Violation(.truncatedFrame))
      #expect(side.takeEvents() == [.abandon(reason), .close(reason)])
      #expect(side.takeFrames() == [])
    }
  }

  @Test func `nothing that was read before is handed on once the connection has closed`() {
    // A driver may close when it is told that the connection is open; the request that opened it by
    // coming first stands in memory that is gone by then.
    for closes in [true, false] {
      var connection = Connection(settings: ConnectionSettings(.server), at: .start)
      let bytes = RawFrame(.request, tag: 1, serial: 50, body: [1]).bytes
      unsafe connection.inbox.input.append(bytes.span.bytes)
      connection.received(bytes.count, at: .start)
      #expect(connection.nextStep() == .report(.life(.established)))
      if closes { connection.close(.closedHere) } else { connection.shutDown(at: .start) }
      #expect(connection.nextStep() == .report(.life(.abandon(.closedHere))))
      #expect(connection.nextStep() == (closes ? .close(.closedHere) : nil))
      #expect(connection.nextStep() == nil)
    }
  }

  private func give(_ bytes: [UInt8], to side: Side, _ cutting: Cutting) {
    var dice = Seeded(UInt64(bytes.count))
    var offset = 0
    while offset < bytes.count {
      let size = cutting.size(bytes.count - offset, &dice)
      side.receive(Array(bytes[offset..<offset + size]))
      offset += size
    }
  }
}
