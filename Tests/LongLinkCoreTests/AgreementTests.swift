// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkCore

/// What a greeting agrees on, without a connection.
@Suite struct AgreementTests {
  private var settings: ConnectionSettings {
    var settings = ConnectionSettings(role: .client)
    settings.heartbeatInterval = 20_000_000_000
    settings.heartbeatTimeout = 10_000_000_000
    return settings
  }

  @Test func `absent fields of a hello are the defaults, and the smaller heartbeat holds`() {
    var agreement = Agreement(settings)
    let version = agreement.accept(
      Hello(heartbeatInterval: 60_000, heartbeatTimeout: 4_000, name: "n"), features: .metadata,
      settings)
    #expect(version == Wire.version && agreement.name == "n" && agreement.features == .metadata)
    #expect(agreement.maxBody == Int(Wire.defaultBody))
    #expect(agreement.streamCredit == Int(Wire.defaultCredit))
    #expect(agreement.heartbeatInterval == 20_000_000_000)
    #expect(agreement.heartbeatTimeout == 4_000_000_000)
  }

  @Test func `no heartbeat is shorter than the shortest, and no name longer than the longest`() {
    var agreement = Agreement(settings)
    _ = agreement.accept(
      Hello(
        heartbeatInterval: 1, heartbeatTimeout: 1,
        name: String(repeating: "x", count: Wire.nameLimit + 1)), features: [], settings)
    #expect(agreement.heartbeatInterval == Int64(Wire.shortestInterval) * 1_000_000)
    #expect(agreement.heartbeatTimeout == Int64(Wire.shortestTimeout) * 1_000_000)
    #expect(agreement.name.utf8.count == Wire.nameLimit)
  }

  @Test(arguments: [
    (Welcome(version: Wire.version + 1), Violation.Rule.versionNotOffered),
    (Welcome(features: 1 << 40), .featureNotOffered),
    // Streams need metadata and fragments.
    (Welcome(features: Features.streams.rawValue), .featureNotOffered),
  ])
  func `a welcome states nothing that the hello has not offered`(
    welcome: Welcome, rule: Violation.Rule
  ) {
    var agreement = Agreement(settings)
    let violation = #expect(throws: Violation.self) {
      try agreement.accept(welcome, settings, at: .start)
    }
    #expect(violation?.rule == rule)
    #expect(agreement == Agreement(settings))
  }
}
