// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
internal import LongLinkTesting

extension ScenarioPlan {
  /// The least number of requests in a scenario: 200 by clients, and some by servers.
  private static let leastRequests = 230

  mutating func drawFaults(_ profile: FaultProfile, _ dice: inout SeededGenerator) {
    for _ in 0..<dice.int(profile.count) {
      guard let kind = profile.draw(using: &dice) else { return }
      // The last faults may not have ended when the world heals.
      let at = Duration.milliseconds(dice.int(2_000...580_000))
      let length = dice.pick([500...3_000, 3_000...20_000, 20_000...90_000])
      faults.append(
        Fault(
          kind: kind, at: at, lasting: .milliseconds(dice.int(length)), victim: dice.next(),
          detail: dice.next()))
    }
    faults.sort { $0.at < $1.at }
  }

  /// Draws bursts of requests with idle times between them, and requests around most faults.
  mutating func drawWork(_ dice: inout SeededGenerator) {
    var times: [Duration] = []
    func scatter(_ count: Int, from start: Duration, over length: Duration) {
      for _ in 0..<count {
        times.append(start + length / 1_000 * dice.int(0...1_000))
      }
    }
    scatter(dice.int(3...20), from: .zero, over: .seconds(2))
    for fault in faults where dice.chance(3, in: 4) {
      let span = min(fault.lasting, .seconds(60))
      scatter(dice.int(4...24), from: max(.zero, fault.at - .seconds(1)), over: span + .seconds(3))
    }
    while times.count < Self.leastRequests {
      let start = Duration.milliseconds(dice.int(0...590_000))
      scatter(dice.int(5...30), from: start, over: .milliseconds(dice.int(0...4_000)))
    }
    times.sort()
    for time in times {
      if dice.chance(1, in: 8) {
        pushes.append(
          PushPlan(
            at: time, client: dice.int(0...clients.count - 1), isFromServer: dice.chance(1, in: 2),
            size: drawSize(&dice)))
      }
      requests.append(drawRequest(UInt64(requests.count + 1), at: time, &dice))
    }
  }

  /// Draws a request. Servers send at most a hundred, in the middle of a run.
  private func drawRequest(
    _ key: UInt64, at time: Duration, _ dice: inout SeededGenerator
  ) -> Request {
    let isFromServer = dice.chance(1, in: 12) && key > 60 && key < 160
    let isOrdered = !isFromServer && dice.chance(1, in: 6)
    return Request(
      key: key,
      at: time,
      client: dice.int(0...clients.count - 1),
      isFromServer: isFromServer,
      style: isFromServer
        ? .awaitedElsewhere : dice.pick(isOrdered ? Style.direct : Style.allCases),
      // Inline handlers run in the order of arrival.
      work: isOrdered ? .inline : drawWorkOfHandler(&dice),
      size: drawSize(&dice),
      answerSize: drawSize(&dice),
      deadline: dice.pick([
        nil, nil, .milliseconds(dice.int(1...2_000)), .milliseconds(dice.int(2_000...60_000)),
      ]),
      cancelAfter: dice.chance(1, in: 8) ? .milliseconds(dice.int(0...1_500)) : nil,
      notifiesCancel: dice.chance(1, in: 2),
      waits: dice.pick([nil, nil, true, false]),
      priority: dice.pick([0, 0, 0, 1, 7]),
      isIdempotent: dice.chance(1, in: 6),
      isOrdered: isOrdered)
  }

  private func drawWorkOfHandler(_ dice: inout SeededGenerator) -> Work {
    switch dice.int(0...99) {
    case ..<40: .inline
    case ..<70: .delayed(.milliseconds(dice.int(0...200)))
    case ..<84: .delayed(.milliseconds(dice.int(500...20_000)))
    case ..<90: .rejecting
    case ..<96: .hanging
    default: .missing
    }
  }

  private func drawSize(_ dice: inout SeededGenerator) -> Int {
    switch dice.int(0...99) {
    case ..<4: 0
    case ..<75: dice.int(ScenarioBody.headerLength...300)
    case ..<92: dice.int(300...20_000)
    case ..<98: dice.int(20_000...100_000)
    default: dice.int(100_000...300_000)
    }
  }
}
