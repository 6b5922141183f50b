// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkCore

/// The heartbeat's rules by themselves: no frames, no timers, no connection.
@Suite struct LivenessTests {
  private static let second: Int64 = 1_000_000_000
  private let begin = LinkInstant(nanoseconds: 1_000 * LivenessTests.second)

  private func at(_ seconds: Int64) -> LinkInstant { begin + seconds * LivenessTests.second }

  private func liveness(
    _ configure: (inout ConnectionSettings) -> Void = { _ in }
  ) -> Liveness {
    var settings = ConnectionSettings(role: .client)
    settings.heartbeatInterval = 30 * LivenessTests.second
    settings.heartbeatTimeout = 10 * LivenessTests.second
    configure(&settings)
    return Liveness(settings, at: begin)
  }

  @Test func `a copy is independent`() {
    var suspecting = liveness()
    suspecting.suspect(pingEnd: 100, acknowledged: 90, pingHasLeft: true, at: at(30))
    var answered = suspecting
    #expect(answered == suspecting)
    #expect(answered.read(at: at(39)) == 0)
    let isDeadWhenAnswered = answered.isDead(acknowledged: 90, allHasLeft: true, at: at(40))
    let isDeadInSilence = suspecting.isDead(acknowledged: 90, allHasLeft: true, at: at(40))
    #expect(!isDeadWhenAnswered)
    #expect(isDeadInSilence)
    #expect(answered != suspecting)
  }

  @Test func `bytes that leave before the ping move the limit, and those behind it do not`() {
    var liveness = liveness()
    liveness.suspect(pingEnd: 100, acknowledged: 10, pingHasLeft: false, at: at(30))
    var isDead = liveness.isDead(acknowledged: 50, allHasLeft: false, at: at(38))
    #expect(!isDead)
    #expect(liveness.suspicion?.limit == at(48))
    isDead = liveness.isDead(acknowledged: 100, allHasLeft: false, at: at(47))
    #expect(!isDead)
    #expect(liveness.suspicion?.limit == at(57))
    isDead = liveness.isDead(acknowledged: 200, allHasLeft: true, at: at(57))
    #expect(isDead)
  }

  @Test func `a suspected peer is declared dead at the limit, and checked before it`() {
    var liveness = liveness()
    #expect(liveness.nextJudgement(at: at(30)) == .distantFuture)
    liveness.suspect(pingEnd: 100, acknowledged: nil, pingHasLeft: false, at: at(30))
    #expect(liveness.nextJudgement(at: at(30)) == at(30) + 10 * LivenessTests.second / 8)
    liveness.suspect(pingEnd: 100, acknowledged: nil, pingHasLeft: true, at: at(30))
    #expect(liveness.nextJudgement(at: at(30)) == at(40))
  }

  @Test func `the timer finds silence, then a suspect, then death, unless this side stood still`() {
    var liveness = liveness()
    func verdict(at seconds: Int64, lateBy late: Int64 = 0) -> Liveness.Verdict {
      liveness.judge(
        due: at(seconds - late), acknowledged: 0, allHasLeft: true, at: at(seconds))
    }
    var verdicts = [verdict(at: 29), verdict(at: 30)]
    liveness.suspect(pingEnd: 0, acknowledged: 0, pingHasLeft: true, at: at(30))
    verdicts += [verdict(at: 39), verdict(at: 42, lateBy: 2), verdict(at: 40)]
    #expect(verdicts == [.alive, .silent, .suspected(until: at(40)), .silent, .dead])
  }

  @Test func `deadlines missed in a row are a reason to ask once a second`() {
    var liveness = liveness()
    var asks = (0..<3).map { _ in liveness.deadlineMissed(limit: 3, at: at(1)) }
    #expect(asks == [false, false, true])
    asks = (0..<3).map { _ in liveness.deadlineMissed(limit: 3, at: at(1)) }
    #expect(asks == [false, false, false])
    let asksLater = liveness.deadlineMissed(limit: 3, at: at(2))
    #expect(asksLater)
    liveness.heard(at: at(4))
    asks = (0..<3).map { _ in liveness.deadlineMissed(limit: 3, at: at(5)) }
    #expect(asks == [false, false, true])
  }

  @Test func `the longest silence before unanswered bytes is remembered until a byte comes`() {
    var liveness = liveness()
    liveness.wrote(at: at(5))
    liveness.wrote(at: at(7))
    #expect(liveness.silenceProbed == 5 * LivenessTests.second)
    #expect(liveness.read(at: at(8)) == nil)
    #expect(liveness.silenceProbed == 0)
    liveness.wrote(at: at(20))
    liveness.suspect(pingEnd: 1, acknowledged: nil, pingHasLeft: true, at: at(20))
    #expect(liveness.read(at: at(21)) == 12 * LivenessTests.second)
    #expect(liveness.suspicion == nil)
  }

  @Test func `this side's pace shortens what was agreed and never lengthens it`() {
    var liveness = liveness { $0.pace = 5 * LivenessTests.second }
    #expect(liveness.pingInterval == 5 * LivenessTests.second)
    liveness.agree(interval: 3 * LivenessTests.second, timeout: LivenessTests.second)
    #expect(liveness.pingInterval == 3 * LivenessTests.second)
    liveness.setPace(60 * LivenessTests.second)
    #expect(liveness.pingInterval == 3 * LivenessTests.second)
    #expect(!liveness.isSilent(at: at(2)))
    #expect(liveness.isSilent(at: at(3)))
  }

  @Test func `a peer may send a hundred pings in ten seconds`() {
    var liveness = liveness()
    let first = (0..<100).map { _ in liveness.countPeerPing(at: at(1)) }
    #expect(first.allSatisfy { $0 })
    let oneMore = liveness.countPeerPing(at: at(10))
    #expect(!oneMore)
    let later = liveness.countPeerPing(at: at(21))
    #expect(later)
  }

  @Test func `no more than a hundred unanswered pings are remembered, the newest ones`() {
    var liveness = liveness()
    for second in 0..<200 {
      let id = liveness.nextPingID()
      liveness.sentPing(id, at: at(Int64(second)))
    }
    #expect(liveness.pingsUnanswered == 100)
    let forgotten = liveness.answered { $0 == 100 }
    #expect(forgotten == nil)
    let answered = liveness.answered { $0 == 101 }
    #expect(answered == OutstandingPing(id: 101, sent: at(100)))
  }
}
