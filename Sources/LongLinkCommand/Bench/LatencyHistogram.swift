/// How often which time was seen, to a thousandth of it, in memory that does not grow.
///
/// Times below 2,048 have a bucket each, and so has, from there on, each of 1,024 equal parts of the
/// range between two powers of two: the layout of HdrHistogram with three digits.
struct LatencyHistogram: Sendable {
  private static let partBits = 10
  private static let parts = 1 << partBits
  private static let buckets = bucket(of: .max) + 1

  private var counts = [UInt64](repeating: 0, count: buckets)
  private(set) var count: UInt64 = 0
  private(set) var least = UInt64.max
  private(set) var most: UInt64 = 0
  private var sum = 0.0

  private static func bucket(of value: UInt64) -> Int {
    let shift = max(0, UInt64.bitWidth - 1 - value.leadingZeroBitCount - partBits)
    return shift * parts + Int(value >> UInt64(shift))
  }

  /// The greatest value that falls into a bucket.
  private static func greatest(in bucket: Int) -> UInt64 {
    guard bucket >= 2 * parts else { return UInt64(bucket) }
    let shift = UInt64(bucket / parts - 1)
    let part = UInt64(bucket) - shift * UInt64(parts)
    return (part << shift) + ((1 << shift) - 1)
  }

  /// Notes a time, in nanoseconds.
  mutating func record(_ value: UInt64) {
    counts[LatencyHistogram.bucket(of: value)] += 1
    count += 1
    sum += Double(value)
    least = min(least, value)
    most = max(most, value)
  }

  /// The least time that so large a part of all times, in percent, does not exceed; 0 without any.
  func value(atPercentile percent: Double) -> UInt64 {
    guard count > 0 else { return 0 }
    let rank = max(1, UInt64((Double(count) * percent / 100).rounded(.up)))
    var seen: UInt64 = 0
    for (bucket, number) in counts.enumerated() where number > 0 {
      seen += number
      if seen >= rank { return min(LatencyHistogram.greatest(in: bucket), most) }
    }
    return most
  }

  /// The mean; 0 without any.
  var mean: Double { count > 0 ? sum / Double(count) : 0 }

  /// How many times lie between one power of two and the next, from the first that has one to the
  /// last.
  var octaves: [(from: UInt64, count: UInt64)] {
    guard count > 0 else { return [] }
    var numbers = [UInt64](repeating: 0, count: UInt64.bitWidth + 1)
    for (bucket, number) in counts.enumerated() where number > 0 {
      let greatest = LatencyHistogram.greatest(in: bucket)
      numbers[UInt64.bitWidth - greatest.leadingZeroBitCount] += number
    }
    let seen = numbers.indices.filter { numbers[$0] > 0 }
    return (seen[0]...seen[seen.count - 1]).map { index in
      (from: index == 0 ? 0 : 1 << UInt64(index - 1), count: numbers[index])
    }
  }
}
