// SPDX-License-Identifier: Apache-2.0

/// The ratio of errors among the last outcomes at which a client moves to another server.
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
