// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCertificates
import LongLinkServer
import LongLinkTesting
import Testing

@testable import LongLinkTLS
@_spi(Loop) @testable import LongLinkTransport

/// What a ticket must not get around.
@Suite struct ResumptionTests {
  private static let keys = TLSServerConfiguration.Tickets.keys(
    .bytes(Array(repeating: 3, count: 80)))

  private static func server(_ names: [String]) throws -> TLSServer {
    try TLSServer(.with(Certificates.make(.server, names)) { $0.tickets = keys })
  }

  @Test func `a ticket of one name is never offered to another`() async throws {
    // Two servers that share keys: each could resume a session of the other.
    let servers = try ["a.test", "b.test"].map { try Self.server(["DNS:\($0)"]) }
    let client = try TLSClient(.trusting())
    try await Stage.run { loop in
      func connect(_ host: String, _ server: TLSServer) throws -> String {
        let stage = ClientStage(on: loop, client, server, host: host)
        guard stage.shakeHands() else {
          defer { stage.close() }
          return stage.stream.layer?.securityFailure?.code.description ?? "none"
        }
        let isResumed = stage.stream.layer?.security?.isResumed
        try stage.finish()
        return isResumed == true ? "resumed" : "new"
      }
      var outcomes = [try connect("a.test", servers[0])]
      // Somebody leads the client to the first server, which has no certificate for this name.
      outcomes.append(try connect("b.test", servers[0]))
      outcomes.append(try connect("a.test", servers[0]))
      outcomes.append(try connect("b.test", servers[1]))
      #expect(outcomes == ["new", "nameMismatch", "resumed", "new"])
    }
  }
}
