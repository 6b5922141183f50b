/// How long a client waits before it connects again.
///
/// Each delay is drawn evenly between zero and a bound, so that the clients of one server spread
/// over the whole of it ("full jitter"). The bound doubles with each failure in a row, up to the
/// cap: jitter is applied after the cap, so that clients which have all reached it still spread.
public struct ReconnectPolicy: Hashable, Sendable {
  /// The bound of the first delay after a working link was closed by the server. Default 1 s.
  public var afterClose: Duration
  /// The bound of the first delay after a heartbeat was lost, when all clients of the server may
  /// have lost theirs. Default 5 s.
  public var afterLostHeartbeat: Duration
  /// The bound of the delay after the first failed attempt. Default 1 s.
  public var base: Duration
  /// The largest bound of any delay. Default 30 s.
  public var cap: Duration

  /// Makes a policy; each bound is above zero and the cap at least as large as the base.
  public init(
    afterClose: Duration = .seconds(1),
    afterLostHeartbeat: Duration = .seconds(5),
    base: Duration = .seconds(1),
    cap: Duration = .seconds(30)
  ) {
    self.afterClose = afterClose
    self.afterLostHeartbeat = afterLostHeartbeat
    self.base = base
    self.cap = cap
  }

  /// The bound after `failures` failed attempts in a row (at least 1), in nanoseconds.
  package func bound(afterFailures failures: Int) -> Int64 {
    let cap = cap.clampedNanoseconds
    let base = base.clampedNanoseconds
    let doublings = min(failures - 1, 62)
    let (scaled, overflow) = base.multipliedReportingOverflow(by: 1 << doublings)
    return overflow ? cap : min(cap, scaled)
  }

  /// A delay within the bound, from 64 random bits, in nanoseconds.
  package static func delay(within bound: Int64, bits: UInt64) -> Int64 {
    guard bound > 0 else { return 0 }
    return Int64((UInt64(bound) + 1).multipliedFullWidth(by: bits).high)
  }
}
