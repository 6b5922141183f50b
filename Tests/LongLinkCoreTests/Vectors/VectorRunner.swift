// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

/// Gives a vector's bytes to a connection and writes down what comes of them.
final class VectorRunner {
  enum Mode: CaseIterable, Sendable {
    case whole
    case single
    case trailing
  }

  private let vector: Vector
  private let mode: Mode
  let side: Side
  private let beginning = LinkInstant.start
  var seen: [Expectation] = []
  var replies: [Expectation] = []
  private(set) var trailingLeft = 0
  static let trailingDrop = Expectation(name: "drop", fields: ["ignoredKind"])
  var problems: [String] = []
  /// All that the connection was given.
  private var given: [UInt8] = []
  private var goawaysSeen = 0
  /// The requests that the vector has the receiver answer: these are no replies of its own.
  private var answered: Set<UInt32> = []
  /// The credit that the receiver has granted beyond the first, by serial.
  var granted: [UInt32: Int] = [:]
  /// The items of which the receiver has sent a part, by serial.
  var partialItems: [UInt32: [UInt8]] = [:]

  init(_ vector: Vector, _ mode: Mode) {
    self.vector = vector
    self.mode = mode
    side = VectorRunner.makeSide(vector)
  }

  private static func makeSide(_ vector: Vector) -> Side {
    let settings = ConnectionSettings(vector.sender.peer) {
      $0.isShort = vector.isShort
      $0.identifies = vector.identifies
      $0.usesOnce = vector.once || vector.features.contains(.once)
      if vector.features.contains(.renewal) { $0.credential = [1] }
      if let limit = vector.limits["max_body"] { $0.maxBody = limit }
      if let limit = vector.limits["max_in_flight"] { $0.maxInFlight = limit }
      if let limit = vector.limits["max_request_bytes"] { $0.maxRequestBytes = limit }
      if let limit = vector.limits["max_windows"] { $0.windows.total = limit }
      if let credit = vector.limits["stream_credit"] { $0.windows.first = credit }
    }
    let side = Side(settings)
    if vector.isWelcomed {
      let kind: FrameKind = vector.sender == .client ? .hello : .welcome
      let hello: [UInt8] = [0x08, 1, 0x10, UInt8(vector.features.rawValue)]
      let states = kind == .welcome && vector.features.contains(.once)
      side.receive(RawFrame(kind, serial: 3, body: hello + (states ? Vector.statedTerms : [])))
    }
    if vector.isWelcomed, vector.identifies || vector.features.contains(.once) {
      side.admit(expiresIn: 0, once: Vector.terms)
    }
    for serial in vector.waiting { side.request(serial) }
    if vector.isDraining {
      side.connection.goAway(
        code: .draining, reason: "", spread: 0, retryAfter: 0, alternatives: [])
      side.drain()
    }
    _ = side.takeFrames()
    _ = side.takeEvents()
    return side
  }

  func run() {
    let lastBytes = vector.steps.lastIndex { step in
      if case .bytes = step { true } else { false }
    }
    var expectations: [Expectation] = []
    for (index, step) in vector.steps.enumerated() {
      if case .expect(let expectation) = step {
        expectations.append(expectation)
        observe()
        check(expectation)
      } else {
        perform(step, isLast: index == lastBytes)
        observe()
      }
    }
    finish(expectations)
  }

  private func perform(_ step: Vector.Step, isLast: Bool) {
    switch step {
    case .at(let time): side.pass(to: beginning + time * 1_000_000)
    case .bytes(let bytes): give(bytes, isLast: isLast)
    case .answer(let serial):
      answered.insert(serial)
      side.respond(serial)
    case .ask(let serial, let credit, let items):
      waiting.insert(serial)
      side.stream(serial, credit: credit, items: items)
    case .write(let serial, let item): side.write(serial, item)
    case .finish(let serial): side.endItems(serial)
    case .take(let serial, let count): side.take(serial, count)
    case .cancel(let serial):
      waiting.remove(serial)
      _ = side.cancel(serial)
    case .admit, .refuse: decide(step)
    case .renew(let credential): side.renew(with: credential)
    case .end: side.receiveEnd()
    case .expect: break
    }
  }

  private func give(_ bytes: [UInt8], isLast: Bool) {
    given += bytes
    switch mode {
    case .whole: side.receive(bytes)
    case .single:
      for byte in bytes {
        side.receive([byte])
        observe()
      }
    case .trailing:
      var bytes = bytes
      if isLast, vector.takesTrailingFrames {
        bytes += RawFrame(wire: 0x3F, tag: 7, serial: 9, body: [1, 2, 3]).bytes
        bytes += RawFrame(.request, tag: 1, serial: 1).bytes.prefix(11)
        trailingLeft = 1
      }
      side.receive(bytes)
    }
  }

  /// Sorts what has come out since the last call.
  private func observe() {
    for frame in side.takeFrames() { observe(frame) }
    for event in side.takeEvents() { observe(event) }
  }

  private func observe(_ frame: RawFrame) {
    switch FrameKind(wire: frame.kind) {
    case .pong: replies.append(Expectation(name: "pong", body: frame.body, isReply: true))
    case .response:
      let fields = [
        "serial=\(frame.serial)", "code=\(frame.tag & 0x7F_FFFF)",
        "refused=\(frame.tag & 0x80_0000 != 0 ? "yes" : "no")",
      ]
      if !answered.contains(frame.serial) {
        replies.append(Expectation(name: "response", fields: fields, isReply: true))
      }
    case .welcome:
      guard let welcome: Welcome = message(frame, .welcome) else { return }
      replies.append(Expectation(name: "welcome", fields: welcome.fields, isReply: true))
    case .renewal where vector.sender == .client: observeAnswer(frame)
    case .goaway:
      goaway = message(frame, .goaway) ?? goaway
    case .item, .end, .credit: observeStream(frame)
    case .ping, .cancel, .request, .renewal: break
    default: if frame.kind != 0x0B { problems.append("unexpected frame \(frame)") }
    }
  }

  private func observe(_ event: Event) {
    switch event {
    case .established: observeGreeting()
    case .identify(let credential): observeIdentification(credential)
    case .renewed(let answer): observeRenewal(answer)
    case .leaving: observeGoAway()
    case .request(let serial, let type, let metadata, let body):
      let fields = ["serial=\(serial)", "type=\(type)"]
      seen.append(
        Expectation(name: "request", fields: fields, body: body, metadata: metadata))
    case .response(let serial, let code, let refused, let metadata, let body):
      observeResponse(serial, code, refused, metadata, body)
    case .push(let type, let metadata, let body):
      seen.append(
        Expectation(name: "push", fields: ["type=\(type)"], body: body, metadata: metadata))
    case .item(let serial, let body):
      seen.append(Expectation(name: "item", fields: ["serial=\(serial)"], body: body))
    case .end(let serial): seen.append(Expectation(name: "end", fields: ["serial=\(serial)"]))
    case .cancel(let serial): seen.append(Expectation(name: "cancel", fields: ["serial=\(serial)"]))
    case .dropped(let reason):
      seen.append(Expectation(name: "drop", fields: [reason.rawValue]))
    case .abandon(.violation(let violation)):
      seen.append(
        Expectation(name: "violation", fields: [violation.rule.rawValue] + violationFields))
    case .abandon(.closedByPeer), .abandon(.noResponse): seen.append(Expectation(name: "closed"))
    case .abandon(.closedHere) where vector.isShort: seen.append(Expectation(name: "ended"))
    case .abandon(.securityFailed(.securePeer)): seen.append(ending("securePeer"))
    case .abandon(.notAccepted): seen.append(ending("refused"))
    case .abandon(let reason): problems.append("unexpected end: \(reason)")
    case .ponged, .heartbeatAnswered, .began, .finished, .resumeSending, .damaged, .refused,
      .shutDownWriting, .close, .itemSent, .overLimit:
      break
    }
  }

  /// What the peer's greeting says, which the connection has taken; a client may do without one.
  private func observeGreeting() {
    let frames = RawFrame.parse(given).frames
    if vector.sender == .client {
      guard let hello: Hello = frames.first.flatMap({ message($0, .hello) }) else { return }
      seen.append(Expectation(name: "hello", fields: hello.fields))
    } else {
      let welcome: Welcome? = frames.lazy.compactMap { self.message($0, .welcome) }.first
      guard let welcome else { return problems.append("a welcome out of nowhere") }
      seen.append(Expectation(name: "welcome", fields: welcome.fields))
    }
  }

  /// What the next goaway says that the connection has taken.
  private func observeGoAway() {
    let frames = RawFrame.parse(given).frames.filter { $0.kind == FrameKind.goaway.rawValue }
    guard goawaysSeen < frames.count, let goaway: GoAway = message(frames[goawaysSeen], .goaway)
    else {
      problems.append("a goaway out of nowhere")
      return
    }
    goawaysSeen += 1
    seen.append(Expectation(name: "goaway", fields: goaway.fields))
  }

  private func message<Message: ControlBody>(_ frame: RawFrame, _ kind: FrameKind) -> Message? {
    frame.kind == kind.rawValue ? try? frame.decoded() : nil
  }

  /// The last goaway of the receiver.
  private(set) var goaway: GoAway?

  private var violationFields: [String] {
    goaway.map { ["code=\($0.code)", "at=\((side.now - beginning) / 1_000_000)"] } ?? []
  }

  private func observeResponse(
    _ serial: UInt32, _ code: UInt32, _ refused: Bool, _ metadata: [UInt8]?, _ body: [UInt8]
  ) {
    guard waiting.remove(serial) != nil else {
      seen.append(Expectation(name: "drop", fields: ["lateReply", "serial=\(serial)"]))
      return
    }
    let fields = ["serial=\(serial)", "code=\(code)", "refused=\(refused ? "yes" : "no")"]
    seen.append(Expectation(name: "response", fields: fields, body: body, metadata: metadata))
  }

  private lazy var waiting = Set(vector.waiting)
}

extension VectorRunner {
  private func check(_ expected: Expectation) {
    switch expected.name {
    case "nothing":
      let seen = seen.filter { trailingLeft == 0 || $0 != VectorRunner.trailingDrop }
      if !seen.isEmpty || !replies.isEmpty || !side.connection.isOpen {
        problems.append("something has come of it: \(seen) \(replies)")
      }
      return
    case "credit": return checkCredit(expected)
    default: break
    }
    let found = expected.isReply ? replies.first : seen.first
    if expected.isReply {
      replies = Array(replies.dropFirst())
    } else {
      seen = Array(seen.dropFirst())
    }
    guard let found, matches(found, expected) else {
      problems.append("expected \(expected.summary), found \(found?.summary ?? "nothing")")
      return
    }
  }

  private func matches(_ found: Expectation, _ expected: Expectation) -> Bool {
    guard found.name == expected.name else { return false }
    if let body = expected.body, found.body != body { return false }
    if found.name != "violation", found.metadata != expected.metadata { return false }
    switch (expected.name, expected.isReply) {
    case ("welcome", true), ("renewal", true), ("violation", _):
      let absent = ["features=0"]
      return expected.fields.allSatisfy { found.fields.contains($0) || absent.contains($0) }
    case ("drop", _):
      // The connection counts what it drops; for the serials of cancels there is no place.
      return found.fields.allSatisfy(expected.fields.contains)
    default:
      return found.fields == expected.fields
    }
  }

  private func finish(_ expectations: [Expectation]) {
    observe()
    if trailingLeft > 0, !vector.expectsViolation {
      let drop = VectorRunner.trailingDrop
      if !side.connection.isClosed, seen.last != drop { problems.append("trailing frame not read") }
      if seen.last == drop { seen.removeLast() }
    }
    if vector.expectsViolation {
      if side.connection.isOpen { problems.append("the connection is still open") }
      // Nothing behind a violation may have been handed on.
      if !seen.isEmpty { problems.append("behind the violation: \(seen.map(\.summary))") }
    } else if !seen.isEmpty || !replies.isEmpty {
      problems.append("not expected: \((seen + replies).map(\.summary))")
    }
  }
}

extension Expectation {
  var summary: String {
    let bytes = body.map { " body=\($0.count > 40 ? "\($0.count) bytes" : "\($0)")" } ?? ""
    return ([isReply ? "reply" : nil, name].compactMap { $0 } + fields).joined(separator: " ")
      + (metadata.map { " metadata=\($0)" } ?? "") + bytes
  }
}
