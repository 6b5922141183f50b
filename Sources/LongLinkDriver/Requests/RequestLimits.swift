// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// The bounds of the requests of one side.
package struct RequestLimits: Sendable {
  /// The most requests that may wait.
  package var maxWaiting: Int
  /// The most bytes that the bodies of waiting requests may have.
  package var maxWaitingBytes: Int
  package var retry: RetryPolicy
  /// The longest retry delay that is accepted from a peer.
  package var longestHint: Duration

  package init(
    maxWaiting: Int, maxWaitingBytes: Int = 16_777_216, retry: RetryPolicy = RetryPolicy(),
    longestHint: Duration = ReconnectPolicy().longestHint
  ) {
    self.maxWaiting = maxWaiting
    self.maxWaitingBytes = maxWaitingBytes
    self.retry = retry
    self.longestHint = longestHint
  }

  /// Returns why another request cannot wait, as text; nil if it can.
  func problem(with bytes: Int, besides count: Int, of waitingBytes: Int) -> String? {
    if count >= maxWaiting {
      return "limits.maxWaiting is \(maxWaiting); \(count) requests (\(waitingBytes) bytes) wait"
    }
    if bytes > maxWaitingBytes - waitingBytes {
      return "limits.maxWaitingBytes is \(maxWaitingBytes) and this request has \(bytes) bytes; "
        + "\(count) requests (\(waitingBytes) bytes) wait"
    }
    return nil
  }
}

extension RetryPolicy {
  /// Throws `invalidConfiguration` if a value is out of range.
  package func validate(field: String) throws(LongLinkError) {
    if maxRetries < 0 || maxRetries > 100 {
      throw .configuration("\(field).maxRetries", "\(maxRetries) is not between 0 and 100")
    }
    if baseDelay <= .zero {
      throw .configuration("\(field).baseDelay", "\(baseDelay) is not above zero")
    }
    if maxDelay < baseDelay {
      throw .configuration("\(field).maxDelay", "it is below \(field).baseDelay")
    }
    for (name, value) in [("budget", budget), ("budgetPerSuccess", budgetPerSuccess)]
    where !value.isFinite || value < 0 {
      throw .configuration("\(field).\(name)", "\(value) is negative or not finite")
    }
  }
}
