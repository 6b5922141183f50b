// SPDX-License-Identifier: Apache-2.0

/// How a client sends requests again by itself.
public struct RetryPolicy: Hashable, Sendable {
  /// How often one request is sent again after it has left; 0 to 100. Default 5.
  ///
  /// One of which no byte has left is always sent again, within its deadline.
  public var maxRetries: Int
  /// The delay before a request that an overloaded server refused is sent again, when the server
  /// states none. Default 100 ms; it doubles with each time, and at least half of it is waited.
  public var baseDelay: Duration
  /// The largest such delay. Default 5 s.
  public var maxDelay: Duration
  /// How many requests may be sent again although they may have run.
  public var budget: RetryBudget

  /// Makes a policy; the first delay is above zero and not above the longest.
  public init(
    maxRetries: Int = 5,
    baseDelay: Duration = .milliseconds(100),
    maxDelay: Duration = .seconds(5),
    budget: RetryBudget = RetryBudget()
  ) {
    self.maxRetries = maxRetries
    self.baseDelay = baseDelay
    self.maxDelay = maxDelay
    self.budget = budget
  }

  /// How long a refused request waits until it is sent for the `time`-th time again, from 64 random
  /// bits, in nanoseconds: what the peer asked for (0 for nothing) and a part more, else a time
  /// between half of the delay and the whole.
  package func delay(time: Int, askedFor: Int64, bits: UInt64) -> Int64 {
    let doublings = min(max(time - 1, 0), 62)
    let (scaled, overflow) =
      baseDelay.clampedNanoseconds.multipliedReportingOverflow(by: 1 << doublings)
    let longest = maxDelay.clampedNanoseconds
    let half = (overflow ? longest : min(longest, scaled)) / 2
    let (sum, isFar) = max(askedFor, half).addingReportingOverflow(
      ReconnectPolicy.even(within: half, bits: bits))
    return isFar ? .max : sum
  }
}
