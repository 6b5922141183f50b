// SPDX-License-Identifier: Apache-2.0

/// How a client chooses between its servers, and the back-off before it reconnects.
///
/// It connects to a server with the lowest priority number that is not cooling down, by weight
/// among equals, and tries each of them once in an outage before it tries one a second time. A
/// server cools down when a round of connection attempts to it has failed, when a link to it lost
/// its heartbeat or ended before it had proved itself, when it drains, and when its error ratio is
/// too high. It does not cool down if the application had no credential for it, if it refused the
/// next credential of a client that is connected to it, or if a credential expired. If all cool
/// down, the one that is ready first is tried. A server that asks clients to stay away is not tried
/// during that time, at most for `longestHint`. This does not affect other servers.
///
/// An *outage* begins when a link is lost and ends when a link has proved itself. It has then
/// answered a request; or it has lasted for a heartbeat interval, and bytes have arrived after the
/// welcome, for example the response to a ping. If the server has shortened the interval, the link
/// must still last for the client's own interval or for 10 s, whichever is less. Each delay in an
/// outage is drawn from a window. The first window depends on how the link was lost; after n failed
/// rounds the window is `min(cap, max(first window, afterRefused * 2^(n - 1)))`. A link that
/// completes its handshake but ends before it has proved itself also counts as a failed round.
///
/// While the window grows, the delay is uniformly random between zero and the window ("full
/// jitter"), which spreads the clients of one server over the whole window. When it no longer
/// grows, the delay is the window times a number between 1 and 1.2. That keeps the clients as
/// spread as the last wide draw left them. Repeated uniform draws from a constant window would
/// bunch them again, to twice the uniform rate, and delays shorter than the window would mix the
/// first clients' next attempts with the last clients'. The jitter is applied after the cap, so
/// that clients which have all reached it do not move in step.
///
/// With several servers, each gets its first attempt in an outage after the first window. The
/// window begins to grow when all servers that are not cooling down have been tried.
///
/// **Server hints.** A draining server can state how long to stay away from it. The client obeys,
/// for at most `longestHint`, and tries its other servers meanwhile. If there is no other server,
/// the hint replaces the first window, and neither a change of the network nor a suspension
/// shortens it.
///
/// If links drain, or their credentials expire, after less than a minute, at most 8 in a row are
/// replaced without a delay; after that the delays grow as after failed rounds. A link that is
/// replaced before its credential expires does not count.
public struct ReconnectPolicy: Hashable, Sendable {
  /// The first window after a working link was closed or failed. Not negative. Default 1 s.
  public var afterClose: Duration
  /// The first window after a lost heartbeat. It is longer by default, because all clients of the
  /// server may have lost theirs. Not negative. Default 5 s.
  public var afterLostHeartbeat: Duration
  /// The least window after the first failed round; it doubles with each further one, up to `cap`.
  /// The outage's first window, `afterClose` or `afterLostHeartbeat`, applies while it is larger.
  /// Positive. Default 1 s.
  public var afterRefused: Duration
  /// The largest window, at least `afterRefused`. Delays at the cap are 1 to 1.2 times as long.
  /// Default 30 s.
  public var cap: Duration
  /// The longest time that a server can delay a reconnect or the retry of a refused request. Not
  /// negative. Default 5 min.
  ///
  /// It limits the sum of `retry_after` and `spread` in a goaway (`retry_after` is reduced first,
  /// so that clients stay spread), the `retry_after` of a response with 429 or 503, and the
  /// `Retry-After` of a gateway or proxy that answers a short link over HTTP.
  public var longestHint: Duration
  /// How long a server cools down after its first failure; it doubles with each further one in a
  /// row, up to `longestCoolDown`. Positive. Default 5 s.
  public var coolDown: Duration = .seconds(5)
  /// The longest cool-down time of a server, at least `coolDown`. Default 5 min.
  public var longestCoolDown: Duration = .seconds(300)
  /// How often a client that is connected to a less preferred server tries to fail back. Up to a
  /// fifth of this time is added at random. Positive. Default 60 s.
  ///
  /// The current link is kept until the better server's handshake is complete.
  public var preferredRetry: Duration = .seconds(60)
  /// Whether alternatives that a draining server names are tried before the list. Default true.
  ///
  /// At most 8 alternatives of a goaway are used, and at most 8 are tried in an outage before the
  /// list. Turn it off if you do not trust your servers to choose others.
  public var followsAlternatives = true
  /// The error ratio at which a server is abandoned for another one. Default: never.
  package var errorRatio: ErrorRatio?

  /// Makes a policy. Values outside their ranges are reported when a client is made, as
  /// `invalidConfiguration`.
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

  /// Returns a policy with a constant window, over which many clients of one server reconnect
  /// evenly. `duration` must be above zero.
  ///
  /// Use it if the server could not handle the reconnects of all clients within seconds. N clients
  /// that lose their server together make about N divided by `duration` connects per second, during
  /// the outage and after it.
  public static func spread(over duration: Duration) -> ReconnectPolicy {
    ReconnectPolicy(
      afterClose: duration, afterLostHeartbeat: duration, afterRefused: duration, cap: duration)
  }

  /// Makes the client move to another server when too many outcomes of requests are errors.
  ///
  /// The client decides by the last `window` outcomes on its link, as soon as there are `minimum`:
  /// it moves if at least `ratio` of them are errors, and another server is not cooling down.
  /// `ratio` is above 0 and up to 1, `minimum` at least 1, and `window` from `minimum` to 100,000;
  /// other values are reported when the client is made. By default the codes 429, 500 and 503 are
  /// errors, and so are deadlines that passed without a response.
  public mutating func leaveServer(
    atErrorRatio ratio: Double, of minimum: Int, window: Int = 100,
    codes: Set<ResponseCode> = [.overloaded, .failed, .draining], countsDeadlines: Bool = true
  ) {
    errorRatio = ErrorRatio(
      minimumRequests: minimum, ratio: ratio, window: window, codes: codes,
      countsDeadlines: countsDeadlines)
  }

  /// Returns the window after `failures` failed rounds of an outage that began with the window
  /// `first`; all in nanoseconds.
  package func window(first: Int64, failures: Int) -> Int64 {
    let cap = cap.clampedNanoseconds
    guard failures > 0 else { return min(cap, first) }
    let base = afterRefused.clampedNanoseconds
    let (scaled, overflow) = base.multipliedReportingOverflow(by: 1 << min(failures - 1, 62))
    return overflow ? cap : min(cap, max(first, scaled))
  }

  /// Returns how long to stay away from a server, in nanoseconds, from the fields of its goaway in
  /// milliseconds and 64 random bits; nil if it gave no hint.
  package func hint(retryAfter: UInt32, spread: UInt32, bits: UInt64) -> Int64? {
    guard retryAfter > 0 || spread > 0 else { return nil }
    let limit = longestHint.clampedNanoseconds
    let spread = min(limit, Int64(spread) * 1_000_000)
    let fixed = min(limit - spread, Int64(retryAfter) * 1_000_000)
    return fixed + ReconnectPolicy.even(within: spread, bits: bits)
  }

  /// Returns a delay between zero and the window, from 64 random bits, in nanoseconds.
  package static func even(within window: Int64, bits: UInt64) -> Int64 {
    guard window > 0 else { return 0 }
    return Int64((UInt64(window) + 1).multipliedFullWidth(by: bits).high)
  }

  /// Returns a delay between 1 and 1.2 times the window, from 64 random bits, in nanoseconds.
  package static func period(of window: Int64, bits: UInt64) -> Int64 {
    let (sum, overflow) = window.addingReportingOverflow(even(within: window / 5, bits: bits))
    return overflow ? .max : max(0, sum)
  }
}
