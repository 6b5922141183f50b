// SPDX-License-Identifier: Apache-2.0

@testable import LongLinkCore
import Testing

@Suite struct PhaseTests {
  /// Ways into each phase of a connection that decides about nobody.
  private static let ways: [[PhaseInput]] = [
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
    [.frameHello, .deafen, .frameRequest, .frameCancel, .frameRequest, .frameCancel, .frameStream],
    [.frameHello, .frameStream], [.frameWelcome, .frameStream, .frameStreamPart, .writeItem],
    [.frameHello, .openStream, .writeItem, .wroteSome], [.frameWelcome, .openStream, .endItems],
    [.frameUnknown], [.frameWelcome, .frameDamaged], [.frameHello, .frameUnknown, .wroteAll],
    [.shutDown], [.frameWelcome, .shutDown, .wroteAll], [.frameHello, .frameRequest, .shutDown],
    [.close], [.frameHello, .ended], [.frameWelcome, .failed], [.elapsedLong],
  ]

  @Test func `a phase is followed only by later ones`() {
    let phases: [ConnectionPhase] = [
      .fresh, .identifying, .open, .closing(.closedHere), .closed(.closedHere),
    ]
    for (place, phase) in phases.enumerated() {
      for (nextPlace, next) in phases.enumerated() {
        #expect(phase.canBecome(next) == (nextPlace > place), "\(phase) to \(next)")
      }
    }
  }

  /// Ways into each phase of a connection that speaks a dialect.
  private static let dialectWays: [[PhaseInput]] = [
    [], [.frameRequest], [.framePing], [.frameHalf], [.request, .wroteAll], [.largeRequest],
    [.push, .push, .wroteSome], [.elapsedToDeadline], [.goAway, .frameRequest],
    [.frameRequest, .outlive, .respond], [.deafen, .frameRequest, .frameCancel],
    [.frameUnknown], [.shutDown, .wroteAll], [.frameRequest, .shutDown], [.close], [.failed],
  ]

  /// Ways of a server that decides about its clients.
  private static let identifyingWays: [[PhaseInput]] = [
    [], [.frameHello], [.frameRequest], [.frameHalf], [.frameHello, .frameRequest],
    [.frameHello, .frameHalf], [.frameHello, .frameRequest, .frameUnknown],
    [.frameHello, .admit], [.frameRequest, .admit], [.frameHello, .frameRequest, .admit],
    [.frameHello, .goAway], [.frameHello, .turnAway], [.frameHello, .frameRequest, .turnAway],
    [.frameHello, .turnAway, .wroteAll], [.frameHello, .shutDown], [.frameHello, .ended],
  ]

  /// Ways of a short link.
  private static let shortWays: [[PhaseInput]] = [
    [], [.request], [.largeRequest, .wroteSome], [.request, .wroteAll, .frameWelcome],
    [.openStream, .frameWelcome], [.frameWelcome, .openStream, .writeItem],
    [.frameWelcome, .openStream, .endItems, .wroteAll], [.request, .frameWelcome, .frameResponse],
    [.request, .cancelKnown],
    [.frameHello], [.frameHello, .frameRequest], [.frameHello, .frameRequest, .respond],
    [.frameHello, .frameFragment], [.frameHello, .frameStream, .frameStreamPart],
    [.frameHello, .frameStream, .frameStreamEnd, .writeItem], [.frameHello, .frameRequest, .ended],
    [.frameHello, .goAway], [.frameHello, .frameHalf], [.frameUnknown], [.shutDown], [.close],
  ]

  private static func ways(of speech: Speech) -> [[PhaseInput]] {
    switch speech {
    case .native: ways
    case .dialect: dialectWays
    case .identifying: identifyingWays
    case .short: shortWays
    }
  }

  @Test(arguments: [Role.client, .server], Speech.allCases)
  func `anything may happen in any phase`(role: Role, speech: Speech) throws {
    // Clients decide about nobody.
    if role == .client, speech == .identifying { return }
    let settings = try speech.settings(role)
    let frames = try speech.frames(to: role)
    let inputs = PhaseInput.allCases.filter { !Speech.frames.contains($0) || frames[$0] != nil }
    let triesAll = speech == .native || speech == .dialect
    // A frame of the wrong side ends the connection, so that one way with it is enough.
    let wrong: PhaseInput = role == .client ? .frameHello : .frameWelcome
    for way in Self.ways(of: speech) where way.count == 1 || !way.contains(wrong) {
      let begun = PhaseWalker(settings, frames)
      for input in way { begun.apply(input) }
      // What a driver may not do changes nothing.
      for first in inputs where first.isAllowed(begun.side.connection) {
        let next = PhaseWalker(following: begun)
        next.apply(first)
        // Nothing leads out of the last phase, so that one input is enough there.
        let seconds: [PhaseInput?] =
          begun.side.connection.isClosed
          ? [nil]
          : inputs.filter { second in
            second.isAllowed(next.side.connection)
              && (triesAll || !PhaseInput.special.isDisjoint(with: [first, second]))
          }
        for second in seconds {
          let walker = PhaseWalker(following: next)
          if let second { walker.apply(second) }
          walker.finish()
          if !walker.problems.isEmpty {
            let story = way + [first] + (second.map { [$0] } ?? [])
            Issue.record("\(role), \(speech): \(story): \(walker.problems)")
          }
        }
      }
    }
  }

  @Test(arguments: [Role.client, .server], 0..<200)
  func `long random sequences of events end once`(role: Role, seed: Int) throws {
    let speech: Speech =
      switch seed % 8 {
      case 3, 7: .dialect
      case 5: .short
      case 6 where role == .server: .identifying
      default: .native
      }
    var dice = Seeded(UInt64(seed))
    let walker = try PhaseWalker(speech.settings(role), speech.frames(to: role))
    var story: [PhaseInput] = [role == .client ? .frameWelcome : .frameHello]
    if seed % 16 == 6 { story.append(.admit) }
    for input in story { walker.apply(input) }
    // What ends a connection at once is rare, so that the rest is seen in many orders.
    let ends: Set<PhaseInput> = [
      .frameUnknown, .frameDamaged, .frameItem, .frameHello, .frameWelcome, .failed, .close, .ended,
      .shutDown, .elapsedLong, .strayItem, .frameHalf, .evict, .frameStreamEnd, .failedSecurity,
      .turnAway,
    ]
    for _ in 0..<120 {
      let input = PhaseInput.allCases[dice.below(PhaseInput.allCases.count)]
      if ends.contains(input), dice.below(30) > 0 { continue }
      story.append(input)
      walker.apply(input)
      // The turn of handlers never takes long.
      if walker.side.connection.readHold.waitsForHandlers, dice.below(4) == 0 {
        story.append(.handlersHadTurn)
        walker.apply(.handlersHadTurn)
      }
    }
    walker.finish()
    #expect(walker.problems == [], "\(speech): \(story)")
  }
}
