// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkCore

/// The next credential of a client, on its connection.
@Suite struct CredentialRenewalTests {
  /// A client with a credential, and a server that has accepted it without an end.
  private func open(
    credential: [UInt8] = [1], change: (inout ConnectionSettings) -> Void = { _ in }
  ) -> ConnectionPair {
    let pair = ConnectionPair(
      client: ConnectionSettings(.client) { $0.credential = credential },
      server: ConnectionSettings(.server) {
        $0.identifies = true
        change(&$0)
      })
    pair.exchange()
    pair.server.admit(expiresIn: 10_000)
    pair.exchange()
    _ = pair.client.takeEvents()
    _ = pair.server.takeEvents()
    return pair
  }

  private func answer(
    _ code: ResponseCode, _ credential: [UInt8], reason: String = ""
  ) -> Event {
    .renewed(RenewalAnswer(code: code, reason: reason, credential: credential))
  }

  @Test func `both sides agree where a client has a credential and the server decides`() {
    let agreed = open().client.connection.canRenew
    #expect(agreed)
    let without = open(credential: [])
    #expect(!without.client.connection.canRenew && !without.server.connection.canRenew)
    let old = open { $0.features = [.metadata, .fragments, .streams] }
    #expect(!old.client.connection.canRenew && !old.server.connection.canRenew)
    // A client that must not renew sends nothing.
    old.client.renew(with: [2])
    #expect(old.client.takeFrames() == [])
  }

  @Test func `a credential is renewed, and requests go on`() {
    let pair = open()
    pair.client.renew(with: [2, 3])
    pair.client.request(50)
    pair.exchange()
    #expect(pair.server.takeEvents() == [.identify([2, 3]), .request(50, type: 1, body: [])])
    pair.server.respond(50)
    pair.exchange()
    #expect(pair.client.takeEvents() == [.response(50, code: 200, body: [])])
    #expect(pair.client.connection.isRenewing && pair.server.connection.isRenewing)
    pair.server.admit(expiresIn: 20_000)
    pair.exchange()
    #expect(pair.client.takeEvents() == [answer(.ok, [2, 3])])
    #expect(pair.client.connection.agreement.credentialExpires == 20_000)
    #expect(!pair.client.connection.isRenewing && !pair.server.connection.isRenewing)
    #expect(pair.client.isIdle && pair.server.isIdle)
  }

  @Test(arguments: [401, 403, 429, 503] as [ResponseCode])
  func `an answer with another code changes nothing`(_ code: ResponseCode) {
    let pair = open()
    pair.client.renew(with: [2])
    pair.exchange()
    pair.server.turnAway(code)
    pair.exchange()
    #expect(pair.client.takeEvents() == [answer(code, [2])])
    #expect(pair.client.connection.agreement.credentialExpires == 10_000)
    #expect(pair.client.connection.isOpen && pair.server.connection.isOpen)
  }

  @Test func `one is decided about in a second, and the others are answered at once`() {
    let pair = open()
    for time: Int64 in 0..<30 {
      pair.client.renew(with: [UInt8(time)])
      pair.exchange()
      let isDecided = time % 10 == 0
      #expect(
        pair.server.takeEvents() == (isDecided ? [.identify([UInt8(time)])] : []), "\(time)")
      if isDecided { pair.server.admit(expiresIn: 5) }
      pair.exchange()
      let code: ResponseCode = isDecided ? .ok : .overloaded
      let reason = isDecided ? "" : "too soon"
      #expect(pair.client.takeEvents() == [answer(code, [UInt8(time)], reason: reason)])
      pair.pass(100)
    }
    // Nothing is left that would wake the server up.
    pair.pass(1_000)
    #expect(pair.server.connection.deadline - pair.now > 20_000_000_000)
  }

  @Test func `a pause of the server does not lengthen that second`() {
    let pair = open()
    pair.client.renew(with: [2])
    pair.exchange()
    pair.server.admit(expiresIn: 5)
    pair.exchange()
    pair.server.elapse(to: pair.now + 5_000_000_000)
    pair.client.renew(with: [3])
    pair.exchange()
    #expect(pair.server.takeEvents() == [.identify([2]), .identify([3])])
  }

  @Test func `a second one before the answer ends the connection`() {
    let side = opened(.server) { $0.identifies = true }
    side.admit(expiresIn: 0)
    side.receive(RawFrame(.renewal, body: [1]))
    side.receive(RawFrame(.renewal, body: [2]))
    guard case .abandon(.violation(let violation))? = side.takeEvents().last else {
      Issue.record("it is still open")
      return
    }
    #expect(violation.rule == .kindNotAgreed)
    // What was shown is forgotten, and the decision comes too late.
    side.admit(expiresIn: 9)
    let isRenewing = side.connection.isRenewing
    #expect(!isRenewing)
    #expect(side.takeFrames().allSatisfy { $0.kind != FrameKind.renewal.rawValue })
  }

  @Test func `behind a goaway it comes too late`() {
    let pair = open()
    pair.server.connection.goAway(
      code: .unauthenticated, reason: "", spread: 0, retryAfter: 0, alternatives: [])
    pair.client.renew(with: [2])
    pair.exchange()
    #expect(pair.server.takeEvents() == [])
    #expect(pair.client.takeEvents().last == answer(.draining, [2], reason: "too late"))
  }

  @Test func `a connection that renews is no larger than one that does not`() {
    let pair = open()
    for round: UInt8 in 0..<50 {
      pair.client.renew(with: [UInt8](repeating: round, count: 60_000))
      pair.exchange()
      #expect(pair.client.connection.held.open > 60_000, "the client keeps it until the answer")
      pair.server.admit(expiresIn: 5)
      pair.exchange()
      pair.pass(1_000)
    }
    HeldMemory.releaseStorage(of: &pair.client.connection)
    HeldMemory.releaseStorage(of: &pair.server.connection)
    #expect(pair.client.connection.held.open < 4_096 && pair.server.connection.held.open < 4_096)
    #expect(pair.server.connection.counters.framesReceived == 51)
    #expect(pair.client.connection.counters.framesReceived == 51)
  }
}
