import Testing

@testable import LongLinkCommand

/// What `longlink bench` tells of times.
struct LatencyHistogramTests {
  private struct Generator: RandomNumberGenerator {
    var state: UInt64

    // A linear congruential generator with Knuth's constants for MMIX.
    mutating func next() -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return state ^ state >> 31
    }
  }

  @Test(arguments: [1, 2, 3] as [UInt64])
  func `percentiles differ from the exact ones by a thousandth at most`(seed: UInt64) {
    var generator = Generator(state: seed)
    var histogram = LatencyHistogram()
    var times: [UInt64] = []
    for _ in 0..<10_000 {
      let bits = UInt64.random(in: 0..<50, using: &generator)
      let time = UInt64.random(in: 0...(1 << bits), using: &generator)
      times.append(time)
      histogram.record(time)
    }
    times.sort()
    for percent in [0.01, 1, 25, 50, 75, 90, 99, 99.9, 99.99, 100] {
      let exact = times[Int((10_000 * percent / 100).rounded(.up)) - 1]
      let told = histogram.value(atPercentile: percent)
      #expect(told >= exact)
      #expect(Double(told) <= Double(exact) * (1 + 1.0 / 1_024))
    }
    #expect(histogram.value(atPercentile: 100) == times[9_999])
    #expect(histogram.least == times[0])
    #expect(histogram.octaves.reduce(0) { $0 + $1.count } == 10_000)
  }

  @Test func `each time falls into the power of two that it belongs to`() {
    var histogram = LatencyHistogram()
    for time in [0, 1, 3, 2_047, 2_048, 4_096, .max] as [UInt64] { histogram.record(time) }
    let seen = histogram.octaves.filter { $0.count > 0 }
    #expect(seen.map(\.from) == [0, 1, 2, 1_024, 2_048, 4_096, 1 << 63])
    #expect(seen.allSatisfy { $0.count == 1 })
    #expect(histogram.value(atPercentile: 100) == .max)
  }

  @Test func `without any time there is nothing to tell`() {
    let histogram = LatencyHistogram()
    #expect(histogram.value(atPercentile: 99) == 0)
    #expect(histogram.mean == 0)
    #expect(histogram.octaves.isEmpty)
  }
}
