// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTLS
import LongLinkTesting
import Testing

/// Runs that can be replayed, though OpenSSL draws random numbers of its own.
@Suite struct ReplayTests {
  /// The events of a run, without the hashes of what was written.
  private func trace(seed: UInt64) async throws -> [String] {
    let server = TLSServerConfiguration.with {
      $0.clientCertificates = .required(.only(Certificates.authority))
    }
    let client = TLSClientConfiguration.trusting {
      $0.certificate = TLSIdentity(Certificates.client)
    }
    let parts = try World.Parts(client, server)
    let (_, simulation) = try await World.simulate(parts, seed: seed, conditions: .unsteady) {
      world in
      for round in 0..<8 {
        _ = try await world.client.request(World.echo, Array(repeating: 1, count: 1 << round * 2))
        // The next connection resumes this one.
        if round % 2 == 1 { world.simulation?.network.links.last?.lose() }
        try await world.simulation?.sleep(for: .seconds(3))
      }
    }
    #expect(simulation.openStreams == [])
    return simulation.trace.map { line in
      line.replacing(#/\([0-9a-f]+\)/#, with: "")
    }
  }

  @Test func `the same seed gives the same sizes in the same order`() async throws {
    let first = try await trace(seed: 5)
    let second = try await trace(seed: 5)
    #expect(first.count > 100)
    #expect(first == second)
    #expect(try await trace(seed: 6) != first)
  }
}
