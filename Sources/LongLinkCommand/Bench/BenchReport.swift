import Histogram
import Foundation

/// What came of a load, as it is printed.
struct BenchReport: Encodable {
  /// Milliseconds.
  struct Latency: Encodable {
    let min: Double
    let mean: Double
    let p50: Double
    let p90: Double
    let p99: Double
    let p999: Double
    let p9999: Double
    let max: Double
  }

  let answered: UInt64
  let failed: UInt64
  /// By what went wrong.
  let failures: [String: UInt64]
  let unsent: UInt64
  let seconds: Double
  let requestsPerSecond: Double
  let latency: Latency

  private let octaves: [(from: UInt64, count: UInt64)]

  private enum CodingKeys: CodingKey {
    case answered, failed, failures, unsent, seconds, requestsPerSecond, latency
  }

  init(_ counts: BenchTally.Counts, over duration: Duration) {
    answered = counts.answered
    failed = counts.failed
    failures = counts.failures
    unsent = counts.unsent
    seconds = duration / .seconds(1)
    requestsPerSecond = (Double(counts.answered) / (duration / .seconds(1))).rounded()
    let times = counts.times
    func at(_ percent: Double) -> Double { times.valueAtPercentile(percent).inMilliseconds }
    latency = Latency(
      min: times.totalCount > 0 ? times.min.inMilliseconds : 0,
      mean: times.totalCount > 0 ? UInt64(times.mean).inMilliseconds : 0,
      p50: at(50), p90: at(90), p99: at(99), p999: at(99.9), p9999: at(99.99),
      max: times.totalCount > 0 ? times.max.inMilliseconds : 0)
    octaves = times.octaves
  }

  /// One line of JSON.
  var json: String {
    get throws {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys]
      return String(decoding: try encoder.encode(self), as: UTF8.self)
    }
  }

  /// For people.
  var lines: [String] {
    var lines = [
      String(
        format: "%llu answered in %.2f s, %.0f a second; %llu failed", answered, seconds,
        requestsPerSecond, failed)
    ]
    for name in failures.keys.sorted() { lines.append("  \(failures[name] ?? 0) \(name)") }
    if unsent > 0 {
      lines.append("\(unsent) were due and not sent: too few were free to send; see --in-flight")
    }
    let times: [(String, Double)] = [
      ("min", latency.min), ("mean", latency.mean), ("p50", latency.p50), ("p90", latency.p90),
      ("p99", latency.p99), ("p99.9", latency.p999), ("p99.99", latency.p9999),
      ("max", latency.max),
    ]
    lines += times.map { name, value in
      name.padding(toLength: 8, withPad: " ", startingAt: 0) + String(format: "%12.3f ms", value)
    }
    return lines + bars
  }

  /// A bar for each power of two.
  private var bars: [String] {
    let total = octaves.reduce(0) { $0 + $1.count }
    guard let longest = octaves.map(\.count).max(), longest > 0 else { return [] }
    return octaves.map { octave in
      let length = Int((Double(octave.count) / Double(longest) * 40).rounded(.up))
      let percent = Double(octave.count) / Double(total) * 100
      return String(format: "%12.3f ms %7.3f %%  ", octave.from.inMilliseconds, percent)
        + String(repeating: "█", count: length)
    }
  }
}

extension UInt64 {
  /// A number of nanoseconds in milliseconds, to the microsecond.
  fileprivate var inMilliseconds: Double { (Double(self) / 1_000).rounded() / 1_000 }
}
