// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// What the attempts of a request that runs once state.
@Suite struct OnceStateTests {
  private static let here = KeySpace(1, 2)
  private static let there = KeySpace(3, 4)
  private static let key = OnceKey.fixed(5, 6)

  private static func terms(_ space: KeySpace, _ time: UInt64) -> OnceTerms {
    OnceTerms(space: space, retention: 60_000, time: time, readAt: .start)
  }

  /// An attempt over a long link under these terms, some milliseconds after they were read.
  private static func attempt(
    _ state: inout OnceState, _ terms: OnceTerms?, isShort: Bool = false, mayHaveRun: Bool = false,
    after time: Int64 = 0
  ) -> OnceState.Attempt {
    state.attempt(
      under: terms, isShort: isShort, mayHaveRun: mayHaveRun,
      at: LinkInstant.start + time * 1_000_000)
  }

  private static func states(_ space: KeySpace, _ time: UInt64) -> OnceState.Attempt {
    .states(OnceStatement(key: key, space: space, time: time))
  }

  @Test func `until it may have run, each attempt states what holds on its link`() {
    var state = OnceState(Self.key)
    let none = Self.attempt(&state, nil)
    let first = Self.attempt(&state, Self.terms(Self.here, 1_000), after: 50)
    let second = Self.attempt(&state, Self.terms(Self.there, 9_000), after: 60)
    #expect(none == .notKept)
    #expect(first == Self.states(Self.here, 1_050) && second == Self.states(Self.there, 9_060))
  }

  @Test func `what the application has kept does not change any more`() {
    var state = OnceState(Self.key)
    let nothing = state.keep()
    _ = Self.attempt(&state, Self.terms(Self.here, 1_000), after: 50)
    let kept = state.keep()
    let elsewhere = Self.attempt(&state, Self.terms(Self.there, 9_000))
    let takesOver = state.takesOver(mayHaveRun: false)
    #expect(nothing == nil && kept?.space == Self.here && kept?.time == 1_050)
    #expect(elsewhere == Self.states(Self.here, 1_050) && !takesOver)
  }

  @Test func `once it may have run, it states the same, and the server decides`() {
    var state = OnceState(Self.key)
    let here = Self.terms(Self.here, 1_000)
    let there = Self.terms(Self.there, 1)
    _ = Self.attempt(&state, here)
    let again = Self.attempt(&state, here, mayHaveRun: true, after: 5_000)
    let elsewhere = Self.attempt(&state, there, mayHaveRun: true)
    let nowhere = Self.attempt(&state, nil, mayHaveRun: true)
    let short = Self.attempt(&state, there, isShort: true, mayHaveRun: true)
    let takesOver = state.takesOver(mayHaveRun: true)
    #expect(again == Self.states(Self.here, 1_000) && short == again && elsewhere == again)
    #expect(nowhere == .notKept && !takesOver)
  }

  @Test func `a short link without a known space states none, which never runs`() {
    var state = OnceState(Self.key)
    let first = Self.attempt(&state, nil, isShort: true)
    // It was lost, and the next one states what holds.
    let second = Self.attempt(
      &state, Self.terms(Self.here, 7), isShort: true, mayHaveRun: true)
    let takesOver = state.takesOver(mayHaveRun: true)
    #expect(first == Self.states(.none, 1) && second == Self.states(Self.here, 7) && !takesOver)
  }

  @Test func `a refused space or time is replaced three times`() {
    var state = OnceState(Self.key)
    _ = Self.attempt(&state, Self.terms(Self.here, 1))
    let takesOver = (0..<5).map { _ in state.takesOver(mayHaveRun: false) }
    #expect(takesOver == [true, true, true, false, false])
  }

  @Test func `what the application has kept does not change`() {
    let kept = OnceStatement(key: Self.key, space: Self.here, time: 500)
    var state = OnceState(kept: kept)
    let here = Self.attempt(&state, Self.terms(Self.here, 9_000))
    let there = Self.attempt(&state, Self.terms(Self.there, 9_000))
    let takesOver = state.takesOver(mayHaveRun: false)
    #expect(here == .states(kept) && there == here && !takesOver)
  }

  @Test func `the state of a request follows its serial`() {
    var requests = OnceRequests()
    requests.begin(50, Self.key)
    requests.renumber(50, to: 51)
    let keys = [50, 51].map { serial in requests.change(serial) { $0.key } }
    requests.end(51)
    let ended = requests.change(51) { $0.key }
    #expect(keys == [nil, Self.key] && ended == nil)
  }

  @Test(arguments: [
    OnceKey.fixed(1, 2), .variable([9]), .variable([UInt8](repeating: 7, count: 255)),
  ])
  func `the block of a request is that of its metadata`(_ key: OnceKey) throws {
    let once = OnceStatement(key: key, space: Self.here, time: 300)
    var cache = MetadataCache()
    for remaining: UInt32? in [nil, 0, 70_000] {
      var metadata = Metadata(remaining: remaining)
      metadata.state(once)
      guard case .long(let block) = cache.encode(once, remaining: remaining) else {
        Issue.record("a block of a few bytes")
        return
      }
      #expect(try block == metadata.encodedBytes())
    }
  }
}
