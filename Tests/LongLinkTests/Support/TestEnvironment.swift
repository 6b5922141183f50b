// SPDX-License-Identifier: Apache-2.0

import LongLink
import Testing

/// What a test of behaviour runs over.
enum TestEnvironment: String, Sendable, CustomTestStringConvertible {
  case simulated
  case loopback
  case unix
  /// Short links alone, in a simulation.
  case short
  /// The long link, and short links beside it, in a simulation.
  case bothWays

  /// Those over whose long links everything can go.
  static let allCases: [TestEnvironment] = [.simulated, .loopback, .unix]
  /// Where addresses have ports.
  static let withPorts: [TestEnvironment] = [.simulated, .loopback]

  var isSimulated: Bool { self != .loopback && self != .unix }

  /// The ways of a client that has not the long link alone.
  var ways: [Way]? {
    switch self {
    case .simulated, .loopback, .unix: nil
    case .short: [.short]
    case .bothWays: [.longLink, .short]
    }
  }

  var testDescription: String { rawValue }
}
