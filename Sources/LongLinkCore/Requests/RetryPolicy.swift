// SPDX-License-Identifier: Apache-2.0

/// How a client retries requests automatically.
public struct RetryPolicy: Hashable, Sendable {
  /// The most retries of a request after bytes of it were sent; 0 to 100. Default 5.
  ///
  /// Attempts of which no byte was sent do not count.
  public var maxRetries: Int
  /// The delay before retrying a request that an overloaded or draining server refused, or that was
  /// lost with its short link; above zero. Default 100 ms.
  ///
  /// It doubles with each retry, up to `maxDelay`, and the actual delay is half to all of it. If
  /// the server asks for more than the half, the delay is what it asks for plus up to the half.
  public var baseDelay: Duration
  /// The longest delay to which `baseDelay` grows; at least `baseDelay`. Default 5 s.
  public var maxDelay: Duration
  /// The tokens of a full budget for retrying requests that may have run; not negative. Default
  /// 256; 0 disables their retries.
  ///
  /// The budget is a token bucket, as in gRPC's proposal A6 for retries: each loss of such a
  /// request takes a token, even if too few are left for a retry, and each success returns a part
  /// of one. Requests are retried only while at least half of the tokens are left. So retries
  /// bridge a temporary fault, but do not double the load on a peer that fails permanently: beyond
  /// the first half there are at most `budgetPerSuccess` retries for each success. By default, 128
  /// requests that one connection loses at once are all retried.
  public var budget: Double
  /// The tokens that each successful request returns to the budget; not negative. Default 0.1.
  public var budgetPerSuccess: Double

  /// Makes a policy. Values outside their ranges are reported when a client is made, as
  /// `invalidConfiguration`.
  public init(
    maxRetries: Int = 5,
    baseDelay: Duration = .milliseconds(100),
    maxDelay: Duration = .seconds(5),
    budget: Double = 256,
    budgetPerSuccess: Double = 0.1
  ) {
    self.maxRetries = maxRetries
    self.baseDelay = baseDelay
    self.maxDelay = maxDelay
    self.budget = budget
    self.budgetPerSuccess = budgetPerSuccess
  }

  /// Delay before retry number `time`, in nanoseconds: the server's retry-after (0 for none) plus
  /// jitter, else half to all of the exponential delay. `bits` are 64 random bits.
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
