// SPDX-License-Identifier: Apache-2.0

import LongLinkCertificates
import LongLinkScenarios
import LongLinkTLS
import LongLinkTesting
import Testing

/// Worlds drawn from seeds whose connections are secured.
@Suite struct SecuredScenarioTests {
  /// Certificates for the servers of scenarios, which replace one another.
  private static let identities = (0..<4 as Range<UInt64>).map { number in
    TLSIdentity(
      Certificates.make(
        .server, (0..<3).map { "DNS:server-\($0)" }, serial: 100 + number))
  }
  private static let security = ScenarioSecurity {
    try .tls(.trusting())
  } server: { edition in
    try .tls(TLSServerConfiguration(certificates: [identities[edition % identities.count]]))
  }

  // A release build takes a fraction of the time: `longlink simulate run --tls`.
  @Test(arguments: 0..<6 as Range<UInt64>)
  func `every promise is kept over TLS`(_ seed: UInt64) async throws {
    let report = try await Scenario(seed: seed).run(security: Self.security)
    #expect(report.isGood, "\(report.findings) \(report.replayCommand)")
    #expect(report.requests >= 200 && report.succeeded > 100)
    #expect(report.replayCommand.hasSuffix(" --tls"))
  }

  @Test(arguments: [FaultProfile.hostileNetwork, .restarts, .slowPeers, .credentials])
  func `every promise is kept over TLS under other profiles`(
    _ profile: FaultProfile
  ) async throws {
    let report = try await Scenario(seed: 3, profile: profile).run(security: Self.security)
    #expect(report.isGood, "\(report.findings) \(report.replayCommand)")
  }

  @Test(arguments: [11, 12, 13] as [UInt64])
  func `a seed replays over TLS`(_ seed: UInt64) async throws {
    let scenario = Scenario(seed: seed, profile: .credentials)
    let first = try await scenario.run(security: Self.security)
    let second = try await scenario.run(recording: true, security: Self.security)
    #expect(first.traceHash == second.traceHash)
    #expect(first.traceCount == second.traceCount)
    #expect(first.faults == second.faults)
    #expect(first.succeeded == second.succeeded)
    #expect(first.items == second.items)
    // The drawing has frames, which the network alone does not show.
    #expect(second.timeline?.text().contains("welcome") == true)
  }
}
