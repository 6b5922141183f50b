// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import NIOCore

/// The values of the last ten minutes, for charts and rates.
final class History {
  /// What was known of the server at one instant.
  struct Sample {
    let at: NIODeadline
    let times: Histogram
    let errors: UInt64
    let bytesIn: UInt64
    let bytesOut: UInt64
    let drops: UInt64
    let connections: Int
    /// The longest time in milliseconds that a loop took to answer; 1,000 for one that did not.
    let delay: Double
  }

  /// What has happened between two samples, in each second.
  struct Rates {
    let requests: Double
    let errors: Double
    let bytesIn: Double
    let bytesOut: Double
    let drops: Double
    /// The times of the requests in between.
    let times: Histogram

    init?(from first: Sample, to last: Sample) {
      let seconds = Double((last.at - first.at).nanoseconds) / 1e9
      guard seconds > 0 else { return nil }
      func rate(_ path: KeyPath<Sample, UInt64>) -> Double {
        Double(last[keyPath: path] - min(first[keyPath: path], last[keyPath: path])) / seconds
      }
      times = last.times.since(first.times)
      requests = Double(times.count) / seconds
      errors = rate(\.errors)
      bytesIn = rate(\.bytesIn)
      bytesOut = rate(\.bytesOut)
      drops = rate(\.drops)
    }
  }

  private static let most = 120
  /// The least time over which the current rates are taken.
  private static let leastTime = TimeAmount.seconds(4)

  private(set) var samples: [Sample] = []

  func add(_ sample: Sample) {
    if samples.count == Self.most { samples.removeFirst() }
    samples.append(sample)
  }

  /// The current rates up to a sample that is not kept; nil before there are two samples.
  func rates(until now: Sample) -> Rates? {
    let first = samples.last { now.at - $0.at >= Self.leastTime } ?? samples.first
    return first.flatMap { Rates(from: $0, to: now) }
  }

  /// The rates between each two samples, the last of which is not kept.
  func steps(until now: Sample) -> [Rates] {
    let all = samples + [now]
    return zip(all, all.dropFirst()).compactMap { Rates(from: $0, to: $1) }
  }
}

/// A small chart of values over time.
struct Chart {
  let title: String
  /// The value now, as text.
  let value: String
  let values: [Double]

  /// The chart as a card of an HTML page. Its height is that of the largest value.
  var html: String {
    let most = values.max() ?? 0
    let points = values.enumerated().map { index, value in
      let x = values.count < 2 ? 0 : 240 * Double(index) / Double(values.count - 1)
      let y = most > 0 ? 58 - 56 * value / most : 58
      return "\((x * 10).rounded() / 10),\((y * 10).rounded() / 10)"
    }.joined(separator: " ")
    return """
      <div class="card"><span class="soft">\(title)</span><br><b>\(HTMLPage.escaped(value))</b>
      <svg viewBox="0 0 240 60" preserveAspectRatio="none" role="img" aria-label="\(title)">
      <line x1="0" y1="59" x2="240" y2="59"/><polyline points="\(points)"/></svg>
      <span class="soft">at most \(PageText.number(most))</span></div>

      """
  }

  /// The last values as a line of blocks.
  var blocks: String {
    let blocks = Array("▁▂▃▄▅▆▇█")
    let last = values.suffix(40)
    guard let most = last.max(), most > 0 else { return String(repeating: "▁", count: last.count) }
    return String(last.map { blocks[min(7, Int($0 / most * 7.999))] })
  }
}
#endif
