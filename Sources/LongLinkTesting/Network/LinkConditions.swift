// SPDX-License-Identifier: Apache-2.0

/// How bytes travel in one direction of a simulated link.
///
/// Where a range has more than one value, each use draws one from the simulation's seed.
public struct LinkConditions: Hashable, Sendable {
  /// How the latencies of packets spread over their range.
  public enum Spread: Hashable, Sendable {
    /// Each latency of the range is as likely as any other.
    case even
    /// Most lie around the middle of the range, as on a path with little load.
    case bell
    /// Three of four lie in the lowest hundredth of the range, one of a hundred in its last sixth.
    case longTail
  }

  /// How long a packet travels: 0.5 ms by default. The order of packets is kept. Negative is 0.
  public var latency: ClosedRange<Duration>
  /// How latencies spread over their range: evenly by default.
  public var spread: Spread
  /// How many bytes a second the direction carries, from 1 on; nil, the default, for no limit.
  ///
  /// What is written waits for what was written before it, and arrives piece by piece.
  public var bandwidth: Int?
  /// The most bytes that one read gives, from 1 on; unlimited by default. 1 is byte by byte.
  public var readSize: ClosedRange<Int>
  /// The most bytes that one write takes, from 1 on; unlimited by default.
  public var writeSize: ClosedRange<Int>
  /// How many bytes may be under way and unread before the writer has to wait: 256 KiB by default.
  public var window: Int

  /// Makes conditions; each part has a default.
  ///
  /// Sizes, bandwidth and window below 1 are a programming error.
  public init(
    latency: ClosedRange<Duration> = .microseconds(500) ... .microseconds(500),
    spread: Spread = .even,
    bandwidth: Int? = nil,
    readSize: ClosedRange<Int> = .max ... .max,
    writeSize: ClosedRange<Int> = .max ... .max,
    window: Int = 262_144
  ) {
    precondition(bandwidth.map { $0 > 0 } ?? true, "a link carries at least one byte a second")
    precondition(readSize.lowerBound > 0, "a read gives at least one byte")
    precondition(writeSize.lowerBound > 0, "a write takes at least one byte")
    precondition(window > 0, "a window has room for at least one byte")
    self.latency = latency
    self.spread = spread
    self.bandwidth = bandwidth
    self.readSize = readSize
    self.writeSize = writeSize
    self.window = window
  }

  /// Half a millisecond of latency, no limit to a read or write, a window of 256 KiB.
  public static let normal = LinkConditions()

  /// Each read gives one byte.
  public static let byteByByte = LinkConditions(readSize: 1...1)

  /// Reads and writes of random sizes and a latency between 0.1 and 20 ms.
  public static let unsteady = LinkConditions(
    latency: .microseconds(100) ... .milliseconds(20),
    readSize: 1...2_000,
    writeSize: 1...2_000
  )

  /// A weak radio link: 30 ms to 2 s of latency, most of it short, and 40 kB a second.
  public static let weakRadio = LinkConditions(
    latency: .milliseconds(30) ... .seconds(2),
    spread: .longTail,
    bandwidth: 40_000,
    window: 65_536
  )
}

extension LinkConditions {
  /// How long a packet travels, in nanoseconds.
  func drawLatency(using generator: inout SeededGenerator) -> Int64 {
    let least = max(latency.lowerBound.clampedNanoseconds, 0)
    let most = max(latency.upperBound.clampedNanoseconds, least)
    guard least < most else { return least }
    // No function whose last bits differ from one machine to another has a part in this.
    switch spread {
    case .even:
      return Int64.random(in: least...most, using: &generator)
    case .bell:
      let quarter = (most - least) / 4
      return (0..<4).reduce(least) { sum, _ in
        sum + Int64.random(in: 0...quarter, using: &generator)
      }
    case .longTail:
      var share = Double(generator.next() >> 11) * 0x1p-53
      for _ in 0..<4 { share *= share }
      return least + Int64(Double(most - least) * share)
    }
  }
}

/// How a simulated network answers an attempt to connect.
public enum ConnectBehavior: Hashable, Sendable {
  /// Whoever listens there accepts it; without a listener it is refused.
  case normal
  /// It is refused (`ECONNREFUSED`), listener or not.
  case refused
  /// It is not answered. The system asks again after 1, 3, 7, 15, 31 and 63 seconds, which may
  /// succeed once this is over, and gives up after 127 (`ETIMEDOUT`).
  case ignored
  /// There is no way to the host (`EHOSTUNREACH`).
  case unreachable
}
