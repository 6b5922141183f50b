// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkCommand

/// When the requests of `longlink bench --rate` are due.
@Suite(.timeLimit(.minutes(15))) struct BenchScheduleTests {
  private func unsent(of schedule: OpenSchedule) -> [Duration] {
    var found: [Duration] = []
    schedule.finish { found.append($0) }
    return found
  }

  @Test func `requests that are not due yet cost nothing when a schedule ends early`() {
    // One an hour, for more hours than anything could count.
    let schedule = OpenSchedule(
      rate: 1 / 3600.0, from: .now - .seconds(5400), for: .seconds(1e15))
    schedule.stop()
    let unsent = unsent(of: schedule)
    #expect(unsent.count == 2)
    #expect(unsent.allSatisfy { $0 >= .seconds(1800) })
  }

  @Test func `all requests that were due and not taken are reported at the end`() async {
    let schedule = OpenSchedule(rate: 10, from: .now - .seconds(2), for: .seconds(1))
    _ = await schedule.next()
    _ = await schedule.next()
    let expected = (2..<10).map { Duration.seconds(1) - .seconds(Double($0) * 0.1) }
    #expect(unsent(of: schedule) == expected)
    #expect(await schedule.next() == nil)
  }
}
