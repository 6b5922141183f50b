// SPDX-License-Identifier: Apache-2.0

import Histogram
import Foundation
import LongLinkCommandSupport

/// The results of a load, as printed.
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
  /// The number of failures by error.
  let failures: [String: UInt64]
  let unsent: UInt64
  let seconds: Double
  let requestsPerSecond: Double
  let latency: Latency

  private let octaves: [Histogram<UInt64>.Octave]

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

  /// The lines that are printed without `--json`.
  var lines: [String] {
    var lines = [
      String(
        format: "%llu answered in %.2f s, %.0f a second; %llu failed", answered, seconds,
        requestsPerSecond, failed)
    ]
    for name in failures.keys.sorted() { lines.append("  \(failures[name] ?? 0) \(name)") }
    if unsent > 0 {
      lines.append("\(unsent) were due but not sent: all callers were busy; see --in-flight")
    }
    let times: [(String, Double)] = [
      ("min", latency.min), ("mean", latency.mean), ("p50", latency.p50), ("p90", latency.p90),
      ("p99", latency.p99), ("p99.9", latency.p999), ("p99.99", latency.p9999),
      ("max", latency.max),
    ]
    guard !octaves.isEmpty else { return lines }
    let unit = Unit(for: latency.p50)
    lines += times.map { name, value in
      name.padding(toLength: 8, withPad: " ", startingAt: 0) + "\(unit.text(value)) \(unit.name)"
    }
    return lines + [""] + bars(unit)
  }

  /// A bar for each power of two that contains a time.
  private func bars(_ unit: Unit) -> [String] {
    let total = octaves.reduce(0) { $0 + $1.count }
    let longest = octaves.map(\.count).max() ?? 1
    let rows = octaves.map { octave in
      let percent = Double(octave.count) / Double(total) * 100
      return (
        range: unit.text(octave.from.inMilliseconds) + " –" + unit.text(octave.to.inMilliseconds),
        count: "\(octave.count)",
        percent: percent < 0.001 ? "< 0.001" : String(format: "%.3f", percent),
        bar: BenchReport.bar(Double(octave.count) / Double(longest))
      )
    }
    let heading = (range: "from – to in \(unit.name)", count: "count", percent: "%", bar: "")
    let width = max(heading.count.count, rows.map(\.count.count).max() ?? 0)
    return ([heading] + rows).map { row in
      var line = [
        row.range.aligned(to: 24), row.count.aligned(to: width), row.percent.aligned(to: 7),
        row.bar,
      ].joined(separator: "  ")
      while line.last == " " { line.removeLast() }
      return line
    }
  }

  /// A bar of up to 40 columns, in eighths of a column.
  private static func bar(_ share: Double) -> String {
    let eighths = Int((share * 40 * 8).rounded())
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8]
    return String(repeating: "█", count: eighths / 8) + rest
  }

  /// The unit of all times, small enough to distinguish them.
  private enum Unit {
    case microseconds
    case milliseconds

    init(for middle: Double) { self = middle < 1 ? .microseconds : .milliseconds }

    var name: String { self == .microseconds ? "µs" : "ms" }

    /// A number of milliseconds, eleven columns wide.
    func text(_ milliseconds: Double) -> String {
      switch self {
      case .microseconds: String(format: "%11.1f", milliseconds * 1_000)
      case .milliseconds: String(format: "%11.3f", milliseconds)
      }
    }
  }
}

extension String {
  fileprivate func aligned(to width: Int) -> String {
    String(repeating: " ", count: max(0, width - count)) + self
  }
}

extension UInt64 {
  /// A number of nanoseconds in milliseconds.
  fileprivate var inMilliseconds: Double { Double(self) / 1_000_000 }
}
