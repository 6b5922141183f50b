// SPDX-License-Identifier: Apache-2.0

import Testing

/// What a test of behaviour runs over.
enum TestEnvironment: String, CaseIterable, Sendable, CustomTestStringConvertible {
  case simulated
  case loopback
  case unix

  /// Where addresses have ports.
  static let withPorts: [TestEnvironment] = [.simulated, .loopback]

  var testDescription: String { rawValue }
}
