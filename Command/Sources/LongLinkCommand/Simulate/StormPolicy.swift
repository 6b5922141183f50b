// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkTesting

/// How the clients of a storm come back: with a policy of the product, or with another one for
/// comparison that the product does not have.
enum StormPolicy: Equatable, Sendable {
  /// The product's own decisions under one of its policies.
  case product(name: String, ReconnectPolicy)
  /// At once, and again every tenth of a second.
  case none
  /// After five seconds each time, ±10 %.
  case fixed
  /// After 1, 2, 4 seconds and so on up to the window, each ±20 %.
  case exponential

  static let others: [StormPolicy] = [.none, .fixed, .exponential]

  var name: String {
    switch self {
    case .product(let name, _): name
    case .none: "at once, every 0.1 s"
    case .fixed: "every 5 s, ±10 %"
    case .exponential: "exponential, ±20 %"
    }
  }

  /// The delay of another policy before attempt number `attempt`, counted from 0.
  func delay(
    before attempt: Int, window: Duration, using generator: inout SeededGenerator
  ) -> Duration {
    switch self {
    case .product: .zero
    case .none: attempt == 0 ? .zero : .milliseconds(100)
    case .fixed: .seconds(5) * Double.random(in: 0.9...1.1, using: &generator)
    case .exponential:
      min(.seconds(1 << min(attempt, 20)), window)
        * Double.random(in: 0.8...1.2, using: &generator)
    }
  }
}
