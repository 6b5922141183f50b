/// How bytes travel in one direction of a simulated link.
///
/// Where a range has more than one value, each use draws one from the simulation's seed.
public struct LinkConditions: Hashable, Sendable {
  /// How long a packet travels: 0.5 ms by default. The order of packets is kept. Negative is 0.
  public var latency: ClosedRange<Duration>
  /// The most bytes that one read gives, from 1 on; unlimited by default. 1 is byte by byte.
  public var readSize: ClosedRange<Int>
  /// The most bytes that one write takes, from 1 on; unlimited by default.
  public var writeSize: ClosedRange<Int>
  /// How many bytes may be under way and unread before the writer has to wait: 256 KiB by default.
  public var window: Int

  /// Makes conditions; each part has a default. Sizes and window below 1 are a programming error.
  public init(
    latency: ClosedRange<Duration> = .microseconds(500) ... .microseconds(500),
    readSize: ClosedRange<Int> = .max ... .max,
    writeSize: ClosedRange<Int> = .max ... .max,
    window: Int = 262_144
  ) {
    precondition(readSize.lowerBound > 0, "a read gives at least one byte")
    precondition(writeSize.lowerBound > 0, "a write takes at least one byte")
    precondition(window > 0, "a window has room for at least one byte")
    self.latency = latency
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
}

/// How a simulated network answers an attempt to connect.
public enum ConnectBehavior: Hashable, Sendable {
  /// Whoever listens there accepts it; without a listener it is refused.
  case normal
  /// It is refused (`ECONNREFUSED`), listener or not.
  case refused
  /// It is never answered; the system gives it up after 127 seconds (`ETIMEDOUT`).
  case ignored
  /// There is no way to the host (`EHOSTUNREACH`).
  case unreachable
}
