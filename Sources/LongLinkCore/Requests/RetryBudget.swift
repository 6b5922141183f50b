// SPDX-License-Identifier: Apache-2.0

/// The budget for retrying requests that may have run.
///
/// It is a token bucket, as in gRPC's proposal A6 for retries: each lost request takes a token,
/// whether it is retried or not, and each success returns a part of a token. Requests are retried
/// only while at least half of the capacity is left. So retries bridge a temporary fault, but do
/// not double the load on a peer that fails permanently: beyond the first half of the capacity,
/// there are at most `perSuccess` retries for each success. By default, 128 requests that one
/// connection loses at once are all retried.
public struct RetryBudget: Hashable, Sendable {
  /// The tokens of a full bucket, which is the initial state. Default 256; 0 disables retries of
  /// requests that may have run.
  public var capacity: Double
  /// The tokens that each successful request returns. Default 0.1.
  public var perSuccess: Double

  /// Makes a budget; both numbers are finite and not negative.
  public init(capacity: Double = 256, perSuccess: Double = 0.1) {
    self.capacity = capacity
    self.perSuccess = perSuccess
  }
}
