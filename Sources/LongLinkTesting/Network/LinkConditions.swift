// SPDX-License-Identifier: Apache-2.0

/// How bytes travel in one direction of a simulated link.
///
/// Each use of a range draws a value that depends on the simulation's seed.
public struct LinkConditions: Hashable, Sendable {
  /// The distribution of latencies over their range.
  public enum Spread: Hashable, Sendable {
    /// All latencies of the range are equally likely.
    case even
    /// Most latencies are near the middle of the range, as on a path with little load.
    case bell
    /// About 75 % of the latencies are in the lowest hundredth of the range, and 1 % in its highest
    /// sixth.
    case longTail
  }

  /// The latency of a packet in one direction; 0.5 ms by default. Packets stay in order. Negative
  /// values mean 0.
  public var latency: ClosedRange<Duration>
  /// The distribution of latencies over their range; uniform (`even`) by default.
  public var spread: Spread
  /// The bytes per second that the direction carries, at least 1; nil, the default, for no limit.
  ///
  /// Written bytes queue behind earlier ones, and arrive in pieces.
  public var bandwidth: Int? { didSet { check() } }
  /// The most bytes that a read returns, drawn from this range for each read; at least 1, and
  /// unlimited by default.
  public var readSize: ClosedRange<Int> { didSet { check() } }
  /// The most bytes that a write takes, drawn from this range for each write; at least 1, and
  /// unlimited by default.
  public var writeSize: ClosedRange<Int> { didSet { check() } }
  /// The number of bytes in flight or unread at which the writer has to wait; 256 KiB by default.
  public var window: Int { didSet { check() } }

  /// Makes conditions; each part has a default.
  ///
  /// Sizes, a bandwidth or a window below 1 trap, here and when they are set later.
  public init(
    latency: ClosedRange<Duration> = .microseconds(500) ... .microseconds(500),
    spread: Spread = .even,
    bandwidth: Int? = nil,
    readSize: ClosedRange<Int> = .max ... .max,
    writeSize: ClosedRange<Int> = .max ... .max,
    window: Int = 262_144
  ) {
    self.latency = latency
    self.spread = spread
    self.bandwidth = bandwidth
    self.readSize = readSize
    self.writeSize = writeSize
    self.window = window
    check()
  }

  private func check() {
    precondition(bandwidth.map { $0 > 0 } ?? true, "a link carries at least one byte a second")
    precondition(readSize.lowerBound > 0, "a read gives at least one byte")
    precondition(writeSize.lowerBound > 0, "a write takes at least one byte")
    precondition(window > 0, "a window has room for at least one byte")
  }

  /// The default conditions: half a millisecond of latency, no limit on bandwidth or the sizes of
  /// reads and writes, and a window of 256 KiB.
  public static let normal = LinkConditions()

  /// Normal conditions, except that each read returns one byte.
  public static let byteByByte = LinkConditions(readSize: 1...1)

  /// Conditions in which each read and each write takes at most a random number of bytes, 1 to
  /// 2,000. Latencies are between 0.1 and 20 ms.
  public static let unsteady = LinkConditions(
    latency: .microseconds(100) ... .milliseconds(20),
    readSize: 1...2_000,
    writeSize: 1...2_000
  )

  /// A weak radio link: latencies from 30 ms to 2 s, most of them short, 40,000 bytes per second,
  /// and a window of 64 KiB.
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
    // Only arithmetic that gives the same result, to the last bit, on every platform.
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
  /// A listener accepts the attempt; without a listener it is refused (`ECONNREFUSED`). A listener
  /// whose backlog is full gives no answer, as with ``ConnectBehavior/ignored``.
  case normal
  /// The attempt is refused (`ECONNREFUSED`), even if there is a listener.
  case refused
  /// The attempt gets no answer. The system tries again 1, 3, 7, 15, 31 and 63 seconds after the
  /// first attempt, which may succeed if the behavior has changed by then. After 127 seconds it
  /// gives up (`ETIMEDOUT`).
  case ignored
  /// The attempt fails, because there is no route to the host (`EHOSTUNREACH`).
  case unreachable
}
