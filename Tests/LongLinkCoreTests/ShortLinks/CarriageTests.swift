// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkCore

/// What differs on a short link, question by question.
@Suite struct CarriageTests {
  private static let serial: UInt32 = 0x8000_0001

  /// A short link on which the request has passed; with its response if `isAnswered`.
  private func short(_ role: Role, isAnswered: Bool = false) -> Carriage {
    var carriage = Carriage(role, isShort: true)
    if role == .client {
      carriage.sends(Self.serial)
      carriage.welcomed()
      if isAnswered { carriage.received(FrameHead(.response, serial: Self.serial, length: 0)) }
    } else {
      carriage.received(FrameHead(.request, serial: Self.serial, length: 0))
      if isAnswered { carriage.answered() }
    }
    return carriage
  }

  private func takes(_ carriage: Carriage, _ kind: FrameKind, isCollecting: Bool = false) -> Bool {
    let serial = [.ping, .goaway, .hello, .welcome].contains(kind) ? 0 : Self.serial
    do {
      try carriage.validate(
        FrameHead(kind, serial: serial, length: 0), isOpen: true, isCollecting: isCollecting)
      return true
    } catch {
      return false
    }
  }

  @Test(arguments: [Role.client, .server])
  func `a long link is none of this`(role: Role) {
    var carriage = Carriage(role, isShort: false)
    carriage.sends(Self.serial)
    carriage.answered()
    carriage.gaveUp()
    #expect(carriage == Carriage(role, isShort: false) && !carriage.isShort)
    #expect(carriage.takesRequest && carriage.firstCredit(of: 5) == 5)
    #expect(carriage.awaitsWelcome(isFresh: true) && !carriage.awaitsWelcome(isFresh: false))
    #expect(carriage.end(sentItems: true) == .nothing && !carriage.breaksOff(hasShutDown: false))
    let hasEnded = carriage.peerEnds(isWhole: true)
    #expect(!hasEnded && !carriage.peerHasEnded)
  }

  @Test func `a short link takes each frame at its time alone`() {
    let asked = short(.server)
    let kinds: [FrameKind] = [.request, .item, .end, .cancel, .credit, .ping, .push, .response]
    #expect(kinds.filter { takes(asked, $0) } == [.item, .end])
    #expect(takes(asked, .request, isCollecting: true))
    #expect(takes(Carriage(.server, isShort: true), .request))
    let answers: [FrameKind] = [.item, .response, .ping, .goaway, .welcome]
    #expect(answers.allSatisfy { takes(short(.client), $0) })
    #expect(!answers.contains { takes(short(.client, isAnswered: true), $0) })
    // No answer precedes the welcome.
    var early = Carriage(.client, isShort: true)
    early.sends(Self.serial)
    #expect(answers.filter { takes(early, $0) } == [.ping, .goaway, .welcome])
  }

  @Test func `each side ends its bytes behind its last frame`() {
    #expect(short(.client).end(sentItems: false) == .nothing)
    #expect(short(.client).end(sentItems: true) == .writing)
    var cancelled = short(.client)
    cancelled.gaveUp()
    #expect(cancelled.end(sentItems: true) == .nothing)
    #expect(short(.server).end(sentItems: true) == .nothing)
    #expect(short(.server, isAnswered: true).end(sentItems: true) == .link)
  }

  @Test func `the end of the client's bytes ends nothing while the answer is due`() {
    var fresh = Carriage(.server, isShort: true)
    var (cutOff, whole, late) = (short(.server), short(.server), short(.server, isAnswered: true))
    let goOn = [
      fresh.peerEnds(isWhole: true), cutOff.peerEnds(isWhole: false),
      whole.peerEnds(isWhole: true), late.peerEnds(isWhole: false),
    ]
    #expect(goOn == [false, false, true, true])
    #expect([fresh, cutOff, whole, late].map(\.peerHasEnded) == goOn)
  }

  @Test func `who gives the exchange up breaks the transport off`() {
    #expect(short(.client).breaksOff(hasShutDown: true))
    #expect(!short(.client, isAnswered: true).breaksOff(hasShutDown: true))
    #expect(short(.server, isAnswered: true).breaksOff(hasShutDown: false))
    #expect(!short(.server, isAnswered: true).breaksOff(hasShutDown: true))
  }

  @Test func `what a server lacks of the hello refuses the request`() {
    var carriage = Carriage(.server, isShort: true)
    let features = carriage.agree(on: .supported, of: [.metadata])
    #expect(features == [.metadata, .fragments, .streams, .once])
    #expect(carriage.lacking == [.fragments, .streams, .once] && carriage.refusesAll)
    var unkept = Carriage(.server, isShort: true)
    _ = unkept.agree(on: .supported, of: [.metadata, .fragments, .streams])
    #expect(unkept.lacking == .once && !unkept.refusesAll)
    var long = Carriage(.server, isShort: false)
    let agreed = long.agree(on: .supported, of: [.metadata])
    #expect(agreed == [.metadata] && long.lacking.isEmpty)
  }
}
