// SPDX-License-Identifier: Apache-2.0

/// The remaining tokens of a retry budget.
@usableFromInline package struct RetryTokens: Equatable, Sendable {
  @usableFromInline let capacity: Double
  @usableFromInline let perSuccess: Double
  @usableFromInline package internal(set) var left: Double

  package init(_ capacity: Double, perSuccess: Double) {
    self.capacity = capacity
    self.perSuccess = perSuccess
    left = capacity
  }

  /// Gives back a part of a token, because a request succeeded.
  @inlinable @inline(__always)
  package mutating func succeeded() {
    if left < capacity { left = min(capacity, left + perSuccess) }
  }

  /// Takes a token for a lost request that may have run; returns whether it can be retried.
  package mutating func lost() -> Bool {
    guard left >= 1 else { return false }
    left -= 1
    return left >= capacity / 2
  }
}
