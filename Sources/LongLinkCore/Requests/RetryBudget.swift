// SPDX-License-Identifier: Apache-2.0

/// How many requests may be sent again although they may have run.
///
/// A bucket of tokens, as in gRPC's proposal A6 for retries: each such loss takes a token, whether
/// the request is sent again or not, and each success puts a part of one back. Requests are sent
/// again only while at least half of the capacity is left. So a passing fault is bridged, and a
/// peer that fails all the time is not burdened with everything twice.
public struct RetryBudget: Hashable, Sendable {
  /// The tokens of a full bucket, which it is at first. Default 10; 0 lets nothing be sent again.
  public var capacity: Double
  /// What each request that succeeds puts back, in tokens. Default 0.1.
  public var perSuccess: Double

  /// Makes a budget; both numbers are finite and not negative.
  public init(capacity: Double = 10, perSuccess: Double = 0.1) {
    self.capacity = capacity
    self.perSuccess = perSuccess
  }
}

/// What is left of a retry budget.
package struct RetryTokens: Equatable, Sendable {
  private let budget: RetryBudget
  package private(set) var left: Double

  package init(_ budget: RetryBudget) {
    self.budget = budget
    left = budget.capacity
  }

  /// Tells that a request succeeded.
  @inline(__always)
  package mutating func succeeded() {
    if left < budget.capacity { left = min(budget.capacity, left + budget.perSuccess) }
  }

  /// Tells that a request was lost which may have run; true when it may be sent again.
  package mutating func lost() -> Bool {
    guard left >= 1 else { return false }
    left -= 1
    return left >= budget.capacity / 2
  }
}
