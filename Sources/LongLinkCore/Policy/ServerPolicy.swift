// SPDX-License-Identifier: Apache-2.0

/// How a client chooses between its servers.
///
/// It connects to a server of the lowest priority number that is not cooling down, by weight among
/// equals, and tries each of them once in an outage before it tries one a second time. A server
/// cools down when a round of connects to it has failed, when a link to it ended before it had
/// worked or lost its heartbeat, when it drains, and when its error ratio is too high. When all
/// cool down, the one that is ready first is tried. A server that asks to be left alone is not
/// asked before that time is over, within the limits of `ReconnectPolicy`, nor is any other server
/// passed over for it.
public struct ServerPolicy: Hashable, Sendable {
  /// How long a server cools down after its first failure; it doubles with each further one in a
  /// row. Default 5 s.
  public var coolDown: Duration = .seconds(5)
  /// The longest that a server cools down. Default 5 min.
  public var longestCoolDown: Duration = .seconds(300)
  /// While connected to a server that is not of the first choice, the time after which a link to a
  /// better one is tried; up to a fifth of it is added at random. Default 60 s.
  ///
  /// The present link is kept until the better one's handshake is complete.
  public var preferredRetry: Duration = .seconds(60)
  /// Whether servers that a draining server names are tried, before those of the list. Default
  /// true.
  ///
  /// At most 8 of a goaway are used, and at most 8 tried in an outage, before the list is. Turn it
  /// off where servers are not trusted to choose others.
  public var followsAlternatives = true
  /// When a server that answers badly is left for another one. Default: never.
  public var errorRatio: ErrorRatio?

  /// Makes the default policy.
  public init() {}
}

/// When a server answers so badly that another one is better: too large a part of the last outcomes
/// were errors.
public struct ErrorRatio: Hashable, Sendable {
  /// The fewest outcomes to judge by, at least 1.
  public var minimumRequests: Int
  /// The part of errors among the outcomes, above 0 and up to 1, at which the server is left.
  public var ratio: Double
  /// How many of the last outcomes are looked at, `minimumRequests` to 100,000.
  public var window: Int
  /// The response codes that count as errors.
  public var codes: Set<ResponseCode>
  /// Whether deadlines that passed without an answer count as errors.
  public var countsDeadlines: Bool

  /// Makes a ratio; by default 429, 500, 503 and deadlines are errors, among the last 100 outcomes.
  public init(
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

/// The last outcomes on one server.
struct OutcomeWindow: Equatable, Sendable {
  private var outcomes: [Bool] = []
  private var oldest = 0
  private(set) var errors = 0

  var count: Int { outcomes.count }

  /// Takes an outcome; one that is older than `size` outcomes is forgotten.
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
