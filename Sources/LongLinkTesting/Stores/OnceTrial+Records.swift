// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkOnceStore

// What an `OnceStoreCheck` wants of records, whatever the time.

extension OnceTrial {
  func hasNameAndClock() async throws {
    let first = try await store.status()
    let second = try await store.status()
    expect((1...255).contains(first.name.count), "a name has 1 to 255 bytes")
    expect(second.name, first.name, "the name, asked again")
    expect(first.time >= 1, "the time is at least 1 ms; it is \(first.time)")
    expect(second.time >= first.time, "the clock has gone back")
  }

  func runsOnce() async throws {
    let first = token()
    expect(try await begin(first), .run(number: 1), "the first begin of a key")
    expect(try await begin(token()), .running, "a second begin of it")
    expect(try await begin(first), .running, "a begin that comes twice with one token")
    expect(
      try await begin(token(), Self.fingerprint(of: 2)), .otherFingerprint,
      "a begin with another fingerprint, while the record runs")
    expect(
      try await begin(token(), runsAgain: true), .running,
      "a begin that may run again, while the record runs")
    expect(
      try await store.complete(token(), with: Self.answer), false,
      "complete with a token that no record bears")
    expect(try await store.complete(first, with: Self.answer), true, "complete")
    expect(
      try await store.complete(first, with: OnceAnswer(code: .failed, body: [])), false,
      "complete of what has ended")
    expect(try await store.abandon(first), false, "abandon of what has ended")
    for what in ["begin after complete", "the same again"] {
      expect(try await begin(token()), .answered(Self.answer), what)
    }
    expect(
      try await begin(first), .answered(Self.answer), "a late begin with the token of the run")
    expect(
      try await begin(token(), Self.fingerprint(of: 2)), .otherFingerprint,
      "a begin with another fingerprint, after complete")
    expect(
      try await begin(token(), runsAgain: true), .answered(Self.answer),
      "a begin that may run again, after complete")
    expect(
      try await begin(token(), ahead: 2 * Self.long), .answered(Self.answer),
      "a begin of what has ended, with a time more than a retention ahead")
  }

  func keepsAnswers() async throws {
    let answers = [
      OnceAnswer(code: .ok, body: []),
      OnceAnswer(code: .failed, body: Array("no".utf8)),
      OnceAnswer(code: ResponseCode(wire: 0x7F_FFFF), body: [UInt8](repeating: 0, count: 64)),
      OnceAnswer(
        code: .ok, body: (0..<65_536).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }),
    ]
    for (index, answer) in answers.enumerated() {
      let key = [UInt8(index)]
      let run = token(Self.scope, 7, key)
      expect(try await begin(run), .run(number: 1), "a begin")
      expect(try await store.complete(run, with: answer), true, "complete")
      let found = try await begin(token(Self.scope, 7, key))
      let what =
        "an answer with code \(answer.code) and \(answer.body.count) bytes is kept as it is"
      expect(found == .answered(answer), what)
    }
    let run = token()
    _ = try await begin(run)
    expect(try await store.complete(run, with: nil), true, "complete without an answer")
    expect(try await begin(token()), .notKept, "a begin after that")
    expect(
      try await begin(token(), runsAgain: true), .notKept,
      "a begin that may run again, when the end is known")
  }

  func abandons() async throws {
    let (first, second, third) = (token(), token(), token())
    expect(try await store.abandon(first), false, "abandon of what has not begun")
    _ = try await begin(first)
    expect(try await store.abandon(first), true, "abandon")
    expect(try await store.abandon(first), false, "abandon that comes twice")
    expect(
      try await store.complete(first, with: Self.answer), false, "complete of what was abandoned")
    expect(
      try await begin(second, Self.fingerprint(of: 2)), .run(number: 1),
      "a begin after abandon, also with another fingerprint")
    expect(
      try await store.complete(first, with: Self.answer), false, "complete of an earlier begin")
    expect(try await store.abandon(first), false, "abandon of an earlier begin")
    expect(
      try await begin(third, Self.fingerprint(of: 2)), .running,
      "a begin after those, which must have changed nothing")
    expect(try await store.complete(second, with: Self.answer), true, "complete of the later begin")
  }

  func tellsRecordsApart() async throws {
    let places: [(OnceScope, MessageType, [UInt8])] = [
      (Self.scope, 7, Self.key),
      (Self.scope, 8, Self.key),
      (Self.scope, 0, Self.key),
      (Self.scope, 0xFF_FFFF, Self.key),
      (Self.scope, 7, Self.key.dropLast()),
      (Self.scope, 7, Self.key + [0]),
      (Self.scope, 7, Self.key + Array(" ".utf8)),
      (Self.scope, 7, Array("0123456789ABCDEF".utf8)),
      (Self.scope, 7, [0]),
      (Self.scope, 7, [UInt8](repeating: 0xFF, count: 255)),
      (Self.scope, 7, [UInt8](repeating: 0xFF, count: 254)),
      // Equal as characters, and other bytes.
      (OnceScope(principal: "\u{E9}"), 7, Self.key),
      (OnceScope(principal: "e\u{301}"), 7, Self.key),
      (OnceScope(principal: "Check"), 7, Self.key),
      (OnceScope(principal: "check "), 7, Self.key),
      (OnceScope(clientHash: Array("check".utf8)), 7, Self.key),
      (OnceScope(clientHash: [UInt8](repeating: 0, count: 32)), 7, Self.key),
      (OnceScope(principalHash: [UInt8](repeating: 0, count: 32)), 7, Self.key),
      (OnceScope(principal: ""), 7, Self.key),
      (OnceScope(principal: String(repeating: "n", count: 255)), 7, Self.key),
    ]
    for (index, place) in places.enumerated() {
      let run = token(place.0, place.1, place.2)
      expect(
        try await begin(run), .run(number: 1),
        "a begin of a record with its own scope, type or key (\(index))")
      let answer = OnceAnswer(code: .ok, body: [UInt8(index)])
      expect(try await store.complete(run, with: answer), true, "complete of record \(index)")
    }
    for (index, place) in places.enumerated() {
      expect(
        try await begin(token(place.0, place.1, place.2)),
        .answered(OnceAnswer(code: .ok, body: [UInt8(index)])), "record \(index)")
    }
  }

  func refusesOtherNames() async throws {
    let run = token()
    var attempt = try await attempt(run)
    for name in [attempt.storeName + [0], attempt.storeName.dropLast(), []] {
      var other = attempt
      other.storeName = Array(name)
      expect(try await store.begin(other), .otherName, "a begin for a store of another name")
    }
    attempt.token = token()
    expect(try await store.begin(attempt), .run(number: 1), "a begin after those")
  }

  /// Many at once: exactly one of them succeeds.
  func isAtomic() async throws {
    let runs = (0..<16).map { _ in token() }
    var attempts: [OnceAttempt] = []
    for run in runs { attempts.append(try await attempt(run)) }
    let store = store
    let found = try await withThrowingTaskGroup(of: (OnceToken, OnceFinding).self) { group in
      for attempt in attempts {
        group.addTask { (attempt.token, try await store.begin(attempt)) }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    let winners = found.filter { $0.1 == .run(number: 1) }
    expect(winners.count, 1, "the number of begins that run, of 16 at once")
    expect(
      found.filter { $0.1 == .running }.count, found.count - winners.count,
      "the number of begins that find it running")
    guard let winner = winners.first?.0 else { return }
    let ends = try await withThrowingTaskGroup(of: Bool.self) { group in
      for index in 0..<16 {
        group.addTask {
          index % 4 == 3
            ? try await store.abandon(winner)
            : try await store.complete(
              winner, with: OnceAnswer(code: .ok, body: [UInt8(index)]))
        }
      }
      return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    expect(ends, 1, "the number of ends that succeed, of 16 at once")
  }
}
