// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkCore

/// How long requests took, in fixed buckets.
struct Histogram: Equatable, Sendable {
  /// The upper bounds of the buckets in seconds, as `/metrics` writes them. One more bucket has
  /// what took longer.
  static let bounds = [
    "0.0001", "0.00025", "0.0005", "0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1",
    "0.25", "0.5", "1.0", "2.5", "5.0", "10.0",
  ]
  /// The same in nanoseconds.
  static let limits: [Int64] = [
    100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000,
    100_000_000, 250_000_000, 500_000_000, 1_000_000_000, 2_500_000_000, 5_000_000_000,
    10_000_000_000,
  ]

  /// The number of requests in each bucket.
  private(set) var counts = [UInt64](repeating: 0, count: limits.count + 1)
  /// The time of all of them in nanoseconds.
  private(set) var sum: UInt64 = 0
  /// The longest time, in nanoseconds.
  private(set) var longest: Int64 = 0

  var count: UInt64 { counts.reduce(0, +) }

  mutating func add(_ nanoseconds: Int64) {
    // Most requests are short, so that few bounds are compared.
    counts[Self.limits.firstIndex { nanoseconds <= $0 } ?? Self.limits.count] += 1
    sum &+= UInt64(max(0, nanoseconds))
    longest = max(longest, nanoseconds)
  }

  mutating func add(_ other: Histogram) {
    for index in counts.indices { counts[index] += other.counts[index] }
    sum &+= other.sum
    longest = max(longest, other.longest)
  }

  /// What has come since an earlier state.
  func since(_ earlier: Histogram?) -> Histogram {
    guard let earlier else { return self }
    var change = self
    for index in counts.indices {
      change.counts[index] -= min(earlier.counts[index], counts[index])
    }
    change.sum -= min(earlier.sum, sum)
    return change
  }

  /// The time in milliseconds that a part of the requests did not exceed, estimated within its
  /// bucket, and at most the longest time; nil without requests.
  func milliseconds(of part: Double) -> Double? {
    let rank = part * Double(count)
    guard rank > 0 else { return nil }
    var below = 0.0
    for (index, number) in counts.enumerated() where number > 0 {
      let next = below + Double(number)
      if next >= rank, index < Self.limits.count {
        let low = index == 0 ? 0 : Double(Self.limits[index - 1])
        let high = Double(min(Self.limits[index], max(longest, Int64(low))))
        return (low + (high - low) * (rank - below) / Double(number)) / 1e6
      }
      below = next
    }
    // Longer than the last bound.
    return Double(longest) / 1e6
  }
}

/// One request that has ended, as `/exchanges` shows it.
struct EndedExchange: Sendable {
  let serial: UInt32
  let connection: UInt64
  let code: UInt32
  /// In nanoseconds.
  let time: Int64
  let ended: LinkInstant
}

/// The requests of one method on one loop.
struct MethodFigures: Sendable {
  /// The most requests in each list.
  static let most = 10
  /// How long a slow request is kept, in nanoseconds: an hour.
  private static let longestSlow: Int64 = 3_600_000_000_000

  let name: String
  /// The times by the label of the error, which is empty for a success.
  private(set) var times: [String: Histogram] = [:]
  /// The times of successes, which are not looked up.
  private(set) var successes = Histogram()
  /// The slowest requests, each of which is kept for an hour unless slower ones need its place.
  private(set) var slowest: [EndedExchange] = []
  /// The last failed requests, in no order once there are ten.
  private(set) var failed: [EndedExchange] = []
  private var nextFailed = 0
  /// The index of the fastest of the slowest.
  private var fastest = 0

  init(_ name: String) {
    self.name = name
  }

  mutating func add(_ exchange: EndedExchange, error: String?) {
    if let error {
      times[error, default: Histogram()].add(exchange.time)
      if failed.count < Self.most {
        failed.append(exchange)
      } else {
        failed[nextFailed] = exchange
        nextFailed = (nextFailed + 1) % Self.most
      }
    } else {
      successes.add(exchange.time)
    }
    addSlow(exchange)
  }

  private mutating func addSlow(_ exchange: EndedExchange) {
    if slowest.count < Self.most {
      slowest.append(exchange)
    } else if exchange.time > slowest[fastest].time {
      slowest[fastest] = exchange
    } else {
      return
    }
    findFastest()
  }

  /// Forgets slow requests that ended more than an hour ago.
  mutating func forgetOld(at now: LinkInstant) {
    guard slowest.contains(where: { now - $0.ended > Self.longestSlow }) else { return }
    slowest.removeAll { now - $0.ended > Self.longestSlow }
    findFastest()
  }

  private mutating func findFastest() {
    fastest = slowest.indices.min { slowest[$0].time < slowest[$1].time } ?? 0
  }
}

/// What has happened on one loop, or on several, since the server was started.
struct Figures: Sendable {
  var methods: [MethodFigures] = []
  var ended: [EndReason: UInt64] = [:]
  var handshakes: [HandshakeOutcome: UInt64] = [:]
  var violations: [String: UInt64] = [:]
  /// Answers with another code than 200, by the label of the code.
  var rejections: [String: UInt64] = [:]
  /// How often items waited for credit on connections that have ended.
  var creditStalls: UInt64 = 0
}

/// The label of a response code.
enum CodeLabel {
  /// The label of all codes that the protocol gives no meaning.
  static let other = "_OTHER"
  private static let named: [UInt32: String] = Dictionary(
    uniqueKeysWithValues: [
      ResponseCode.malformed, .unauthenticated, .forbidden, .unknownType, .deadlinePassed,
      .conflict, .gone, .preconditionFailed, .tooLarge, .overloaded, .cancelled, .failed,
      .draining,
    ].map { ($0.rawValue, "\($0)") })

  static func of(_ code: UInt32) -> String { named[code] ?? other }
}
#endif
