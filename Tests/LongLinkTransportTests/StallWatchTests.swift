// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

@testable import LongLinkTransport

/// Which turns of a loop are too long, and which handler is to blame.
@Suite struct StallWatchTests {
  private func at(_ milliseconds: Int64) -> LinkInstant {
    LinkInstant(nanoseconds: milliseconds * 1_000_000)
  }

  @Test func `a turn is too long above the threshold, from the end of the wait on`() {
    for (end, stalls) in [(300, false), (301, true)] as [(Int64, Bool)] {
      var watch = StallWatch(threshold: .milliseconds(200))
      _ = watch.turnBegins()
      watch.isBusy(at: at(100))
      watch.isBusy(at: at(250))
      let stall = watch.turnEnds(at: at(end), last: nil)
      #expect((stall != nil) == stalls)
      #expect(watch.isTiming == stalls)
      if let stall { #expect(stall.duration == 201_000_000 && stall.type == nil) }
    }
  }

  @Test func `a turn in which the loop only waited is never too long`() {
    var watch = StallWatch(threshold: .milliseconds(200))
    watch.isBusy(at: at(0))
    _ = watch.turnBegins()
    let stall = watch.turnEnds(at: at(10_000), last: nil)
    #expect(stall == nil)
  }

  @Test func `before the first stall a handler is to blame if it was the only one`() {
    for (count, type) in [(1, 0x500), (2, nil)] as [(Int, MessageType?)] {
      var watch = StallWatch(threshold: .milliseconds(200))
      _ = watch.turnBegins()
      watch.isBusy(at: at(0))
      for _ in 0..<count { watch.begins(at: at(0)) }
      let stall = watch.turnEnds(at: at(1_000), last: 0x500)
      #expect(stall?.type == type)
    }
  }

  @Test func `afterwards the slowest handler is to blame, if it took most of the time`() {
    var watch = StallWatch(threshold: .milliseconds(200))
    watch.isBusy(at: at(0))
    _ = watch.turnEnds(at: at(1_000), last: nil)
    for (slow, type) in [(600, 0x501), (400, nil)] as [(Int64, MessageType?)] {
      _ = watch.turnBegins()
      watch.isBusy(at: at(0))
      let mark = HandlerMark()
      mark.set(0x500)
      watch.begins(at: at(0))
      watch.pauses(mark, at: at(100))
      mark.set(0x501)
      watch.begins(at: at(100))
      watch.pauses(mark, at: at(100 + slow))
      // The loop went on with something else.
      watch.pauses(mark, at: at(1_000))
      let stall = watch.turnEnds(at: at(1_000), last: nil)
      #expect(stall?.type == type)
    }
  }

  @Test func `who began last is looked up in turns that are too long alone`() {
    var watch = StallWatch(threshold: .milliseconds(200))
    var count = 0
    func last() -> MessageType? {
      count += 1
      return 0x500
    }
    for (end, type) in [(100, nil), (1_000, 0x500)] as [(Int64, MessageType?)] {
      _ = watch.turnBegins()
      watch.isBusy(at: at(0))
      watch.begins(at: at(0))
      let stall = watch.turnEnds(at: at(end), last: last())
      #expect(stall?.type == type)
    }
    #expect(count == 1)
  }

  @Test func `handlers are timed while it is wanted, and for ever after a stall`() {
    var watch = StallWatch(threshold: .milliseconds(200))
    let mark = HandlerMark()
    for (isWanted, isTiming) in [(true, true), (true, true), (false, true), (false, false)] {
      watch.timeHandlers(isWanted, mark)
      #expect(watch.isTiming == isTiming)
    }
    watch.isBusy(at: at(0))
    _ = watch.turnEnds(at: at(1_000), last: nil)
    for isWanted in [true, false] {
      watch.timeHandlers(isWanted, mark)
      #expect(watch.isTiming)
    }
  }

  @Test func `a handler that began before they are timed is not to blame`() {
    var watch = StallWatch(threshold: .milliseconds(200))
    let mark = HandlerMark()
    watch.isBusy(at: at(0))
    mark.set(0x500)
    watch.begins(at: at(0))
    watch.timeHandlers(true, mark)
    watch.pauses(mark, at: at(1))
    let stall = watch.turnEnds(at: at(1_000), last: 0x500)
    #expect(stall != nil && stall?.type == nil)
  }
}
