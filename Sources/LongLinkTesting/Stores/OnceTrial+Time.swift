// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkOnceStore

// What an `OnceStoreCheck` wants of records as time passes, and at a restart.

extension OnceTrial {
  func refusesOtherTimes() async throws {
    // So that there is a time before now.
    try await pass(0.1)
    var past = try await attempt(token())
    past.retention = min(past.keyTime - 1, 10)
    past.keyTime -= past.retention
    expect(try await store.begin(past), .outOfTime, "a begin whose retention is over")
    expect(
      try await begin(token(), ahead: 2 * Self.long), .outOfTime,
      "a begin whose time is more than a retention ahead")
    expect(
      try await begin(token(), ahead: Self.long / 2), .run(number: 1),
      "a begin after those, whose time is half a retention ahead")
  }

  func expires() async throws {
    let run = token()
    let first = try await attempt(run, retention: retention)
    expect(try await store.begin(first), .run(number: 1), "a begin")
    expect(try await store.complete(run, with: Self.answer), true, "complete")
    try await pass(1.2)
    var again = first
    again.token = token()
    expect(
      try await store.begin(again), .outOfTime,
      "the same request after its retention: it must not run again")
    let next = token()
    expect(
      try await begin(next, Self.fingerprint(of: 2), retention: retention), .run(number: 1),
      "another request with the key, after the retention")
    expect(
      try await store.complete(run, with: Self.answer), false, "complete of the expired run")
    expect(try await store.abandon(run), false, "abandon of the expired run")
    expect(try await store.complete(next, with: nil), true, "complete of the later run")
  }

  func keepsWhatRuns() async throws {
    let run = token()
    expect(try await begin(run, retention: retention), .run(number: 1), "a begin")
    try await pass(1.2)
    // Others come and go, so that expired records are removed.
    for index in 0..<40 {
      let other = token(Self.scope, 9, [UInt8(index)])
      expect(try await begin(other, retention: retention), .run(number: 1), "a begin of another")
      expect(try await store.abandon(other), true, "abandon of another")
    }
    expect(
      try await begin(token(), retention: retention), .running,
      "a begin of what still runs after its expiry")
    expect(try await store.complete(run, with: Self.answer), true, "complete after the expiry")
  }

  func keepsUntilKeyTime() async throws {
    let run = token()
    let first = try await attempt(run, ahead: retention * 9 / 10, retention: retention)
    expect(try await store.begin(first), .run(number: 1), "a begin whose time is ahead")
    expect(try await store.complete(run, with: Self.answer), true, "complete")
    try await pass(1.2)
    var again = first
    again.token = token()
    expect(
      try await store.begin(again), .answered(Self.answer),
      "a begin before its time and the retention are over")
  }

  /// The process ends while records run.
  func survives(
    _ restart: @Sendable (any OnceStore) async throws -> any OnceStore
  ) async throws {
    let (done, unkept, open, lost) = (
      token(Self.scope, 7, [1]), token(Self.scope, 7, [2]), token(Self.scope, 7, [3]),
      token(Self.scope, 7, [4])
    )
    for run in [done, unkept, open, lost, token(Self.scope, 7, [5])] {
      expect(try await begin(run), .run(number: 1), "a begin")
    }
    let short = token(Self.scope, 7, [6])
    expect(try await begin(short, retention: retention), .run(number: 1), "a begin")
    _ = try await store.complete(done, with: Self.answer)
    _ = try await store.complete(unkept, with: nil)
    let before = try await store.status()
    store = try await restart(store)
    let after = try await store.status()
    expect(
      after.name, before.name, "the name after a restart: a new one says that records may be lost")
    guard after.name == before.name else { return }
    expect(after.time >= before.time, "the clock has gone back at a restart")
    expect(
      try await begin(token(Self.scope, 7, [1])), .answered(Self.answer),
      "an answer after a restart")
    expect(
      try await begin(token(Self.scope, 7, [2])), .notKept,
      "what was not kept, after a restart")
    expect(
      try await begin(token(Self.scope, 7, [3])), .unknown, "what was running at a restart")
    for runsAgain in [false, true] {
      expect(
        try await begin(
          token(Self.scope, 7, [3]), Self.fingerprint(of: 2), runsAgain: runsAgain),
        .otherFingerprint, "the same with another fingerprint")
    }
    expect(
      try await store.complete(open, with: Self.answer), true,
      "complete by a process that was only slow")
    expect(
      try await begin(token(Self.scope, 7, [3]), runsAgain: true), .answered(Self.answer),
      "a begin after that")
    let next = token(Self.scope, 7, [4])
    expect(
      try await begin(next, runsAgain: true), .run(number: 2),
      "a begin that may run again, of what was running at a restart")
    expect(
      try await store.complete(lost, with: Self.answer), false,
      "complete by a process whose place was taken")
    expect(try await store.abandon(lost), false, "abandon by a process whose place was taken")
    expect(try await store.complete(next, with: nil), true, "complete of the run in its place")
    try await isTakenOverOnce(token(Self.scope, 7, [5]))
    try await pass(1.2)
    for key: UInt8 in [5, 6] {
      expect(
        try await begin(token(Self.scope, 7, [key]), Self.fingerprint(of: 2)), .run(number: 1),
        key == 5
          ? "another request with the key, after the retention of the run that took a record over"
          : "another request with the key, after the retention of what was running at a restart")
    }
  }

  /// Many begins at once take over a record whose end is unknown: one of them succeeds. Its record
  /// has the retention of that begin.
  private func isTakenOverOnce(_ place: OnceToken) async throws {
    var attempts: [OnceAttempt] = []
    for _ in 0..<16 {
      attempts.append(
        try await attempt(
          token(place.scope, place.type, place.key), retention: retention, runsAgain: true))
    }
    let store = store
    let found = try await withThrowingTaskGroup(of: (OnceToken, OnceFinding).self) { group in
      for attempt in attempts {
        group.addTask { (attempt.token, try await store.begin(attempt)) }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    let winners = found.filter { $0.1 == .run(number: 2) }
    expect(winners.count, 1, "the number of begins that take a record over, of 16 at once")
    expect(
      found.filter { $0.1 == .running }.count, found.count - winners.count,
      "the number of begins that find it running again")
    guard let winner = winners.first?.0 else { return }
    expect(try await store.complete(winner, with: Self.answer), true, "complete of that run")
  }
}
