// SPDX-License-Identifier: Apache-2.0

/// The remaining tokens of a retry budget.
@usableFromInline package struct RetryTokens: Equatable, Sendable {
  @usableFromInline let budget: RetryBudget
  @usableFromInline package internal(set) var left: Double

  package init(_ budget: RetryBudget) {
    self.budget = budget
    left = budget.capacity
  }

  /// Gives back a part of a token, because a request succeeded.
  @inlinable @inline(__always)
  package mutating func succeeded() {
    if left < budget.capacity { left = min(budget.capacity, left + budget.perSuccess) }
  }

  /// Takes a token for a lost request that may have run; returns whether it can be retried.
  package mutating func lost() -> Bool {
    guard left >= 1 else { return false }
    left -= 1
    return left >= budget.capacity / 2
  }
}
