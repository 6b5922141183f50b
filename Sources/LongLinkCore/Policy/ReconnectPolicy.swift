// SPDX-License-Identifier: Apache-2.0

/// How long a client waits before it connects again.
///
/// An *outage* begins when a link is lost and ends when one has worked: it has answered a request,
/// or lived through a heartbeat interval. Each pause of an outage is drawn from a window. The first
/// window depends on how the link was lost; after n failed rounds the window is
/// `min(cap, max(first window, afterRefused * 2^(n - 1)))`. A link that greets and ends before it
/// has worked is a failed round too.
///
/// While the window grows, the pause is drawn evenly between zero and the window ("full jitter"),
/// so that the clients of one server spread over the whole of it. Once it grows no more, the pause
/// is the window times a number between 1 and 1.2. That keeps the clients as spread as the last
/// wide draw has made them: repeated even draws from an unchanging window would bunch them again,
/// to twice the even rate, and pauses shorter than the window would let the first clients come
/// again among the last. The jitter comes after the cap, so clients which have all reached it do
/// not move in step.
///
/// Of several servers each gets its first try of an outage after the first window; the window
/// begins to grow when all of them that are not cooling down have been tried.
///
/// **What a server asks for.** A server that drains may say how long to stay away from it. The
/// client does, for at most `longestHint`, and tries its other servers meanwhile. Where there is no
/// other server, that time takes the place of the first window, and neither a change of the network
/// nor a suspension cuts it short. A link that drains after less than
/// a minute is followed by the next one without a pause at most 8 times in a row; after that the
/// pauses grow as after failed rounds.
public struct ReconnectPolicy: Hashable, Sendable {
  /// The first window after a working link was closed or broke. Default 1 s.
  public var afterClose: Duration
  /// The first window after a heartbeat was lost, when all clients of the server may have lost
  /// theirs. Default 5 s.
  public var afterLostHeartbeat: Duration
  /// The window after the first failed round; it doubles with each further one. Default 1 s.
  public var afterRefused: Duration
  /// The widest window; pauses at the cap reach 1.2 times it. Default 30 s.
  public var cap: Duration
  /// The longest that a server can keep the client away, or a refused request waiting. Default 5
  /// min.
  ///
  /// It bounds the sum of `retry_after` and `spread` in a goaway (`retry_after` is cut first, so
  /// that clients stay spread), and the `retry_after` of an answer with 429 or 503.
  public var longestHint: Duration

  /// Makes a policy. No duration is negative, `afterRefused` is above zero and `cap` not below it.
  public init(
    afterClose: Duration = .seconds(1),
    afterLostHeartbeat: Duration = .seconds(5),
    afterRefused: Duration = .seconds(1),
    cap: Duration = .seconds(30),
    longestHint: Duration = .seconds(300)
  ) {
    self.afterClose = afterClose
    self.afterLostHeartbeat = afterLostHeartbeat
    self.afterRefused = afterRefused
    self.cap = cap
    self.longestHint = longestHint
  }

  /// Windows that are all alike: many clients of one server come back evenly over that time.
  ///
  /// For fleets whose server could not bear all of them within seconds. N clients that lose their
  /// server at once make about N divided by `duration` connects a second, for as long as it is away
  /// and when it is back.
  public static func spread(over duration: Duration) -> ReconnectPolicy {
    ReconnectPolicy(
      afterClose: duration, afterLostHeartbeat: duration, afterRefused: duration, cap: duration)
  }

  /// The window after `failures` failed rounds of an outage that began with window `first`; all in
  /// nanoseconds.
  package func window(first: Int64, failures: Int) -> Int64 {
    let cap = cap.clampedNanoseconds
    guard failures > 0 else { return min(cap, first) }
    let base = afterRefused.clampedNanoseconds
    let (scaled, overflow) = base.multipliedReportingOverflow(by: 1 << min(failures - 1, 62))
    return overflow ? cap : min(cap, max(first, scaled))
  }

  /// How long a server asks to be left alone, in nanoseconds, from what its goaway says in
  /// milliseconds and 64 random bits; nil where it does not ask.
  package func hint(retryAfter: UInt32, spread: UInt32, bits: UInt64) -> Int64? {
    guard retryAfter > 0 || spread > 0 else { return nil }
    let limit = longestHint.clampedNanoseconds
    let spread = min(limit, Int64(spread) * 1_000_000)
    let fixed = min(limit - spread, Int64(retryAfter) * 1_000_000)
    return fixed + ReconnectPolicy.even(within: spread, bits: bits)
  }

  /// A pause between zero and the window, from 64 random bits, in nanoseconds.
  package static func even(within window: Int64, bits: UInt64) -> Int64 {
    guard window > 0 else { return 0 }
    return Int64((UInt64(window) + 1).multipliedFullWidth(by: bits).high)
  }

  /// A pause between 1 and 1.2 times the window, from 64 random bits, in nanoseconds.
  package static func period(of window: Int64, bits: UInt64) -> Int64 {
    let (sum, overflow) = window.addingReportingOverflow(even(within: window / 5, bits: bits))
    return overflow ? .max : max(0, sum)
  }
}
