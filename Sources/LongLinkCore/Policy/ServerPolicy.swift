// SPDX-License-Identifier: Apache-2.0

/// How a client chooses between its servers.
///
/// It connects to a server with the lowest priority number that is not cooling down, by weight
/// among equals, and tries each of them once in an outage before it tries one a second time. A
/// server cools down when a round of connection attempts to it has failed, when a link to it lost
/// its heartbeat or ended before it had proved itself, when it drains, and when its error ratio is
/// too high. It does not if the application had no credential, if the server refused the renewed
/// credential of a client that is connected to it, or if a credential expired. If all cool down,
/// the one that is ready first is tried. While a server asks clients to stay away, it is not tried,
/// within the limits of `ReconnectPolicy`. This does not affect other servers.
public struct ServerPolicy: Hashable, Sendable {
  /// How long a server cools down after its first failure; it doubles with each further one in a
  /// row. Default 5 s.
  public var coolDown: Duration = .seconds(5)
  /// The longest cool-down time of a server. Default 5 min.
  public var longestCoolDown: Duration = .seconds(300)
  /// The interval at which a client that uses a less preferred server tries to fail back; up to a
  /// fifth of it is added at random. Default 60 s.
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

  /// Makes the default policy.
  public init() {}

  /// Makes the client move to another server when too many outcomes of requests are errors.
  ///
  /// `ratio` is the ratio of errors to outcomes at which the client moves, above 0 and up to 1. It
  /// applies to the last `window` outcomes (`minimum` to 100,000), once there are at least
  /// `minimum` (1 or more). By default the codes 429, 500 and 503 are errors, and so are deadlines
  /// that passed without a response.
  public mutating func leaveServer(
    atErrorRatio ratio: Double, of minimum: Int, window: Int = 100,
    codes: Set<ResponseCode> = [.overloaded, .failed, .draining], countsDeadlines: Bool = true
  ) {
    errorRatio = ErrorRatio(
      minimumRequests: minimum, ratio: ratio, window: window, codes: codes,
      countsDeadlines: countsDeadlines)
  }
}

/// The ratio of errors among the last outcomes of requests at which a client moves to another
/// server.
package struct ErrorRatio: Hashable, Sendable {
  /// The fewest outcomes to base a decision on, at least 1.
  package var minimumRequests: Int
  /// The ratio of errors to outcomes, above 0 and up to 1, at which the server is abandoned.
  package var ratio: Double
  /// The number of outcomes to consider, `minimumRequests` to 100,000.
  package var window: Int
  /// The response codes that count as errors.
  package var codes: Set<ResponseCode>
  /// Whether deadlines that passed without a response count as errors.
  package var countsDeadlines: Bool

  /// Makes a ratio; by default 429, 500, 503 and deadlines are errors, among the last 100 outcomes.
  package init(
    minimumRequests: Int, ratio: Double, window: Int = 100,
    codes: Set<ResponseCode> = [.overloaded, .failed, .draining], countsDeadlines: Bool = true
  ) {
    self.minimumRequests = minimumRequests
    self.ratio = ratio
    self.window = window
    self.codes = codes
    self.countsDeadlines = countsDeadlines
  }
}

/// The last outcomes of requests to one server.
struct OutcomeWindow: Equatable, Sendable {
  private var outcomes: [Bool] = []
  private var oldest = 0
  private(set) var errors = 0

  var count: Int { outcomes.count }

  /// Adds an outcome, and keeps only the last `size`.
  mutating func add(isError: Bool, size: Int) {
    if isError { errors += 1 }
    guard outcomes.count >= size else {
      outcomes.append(isError)
      return
    }
    if outcomes[oldest] { errors -= 1 }
    outcomes[oldest] = isError
    oldest = (oldest + 1) % size
  }
}
