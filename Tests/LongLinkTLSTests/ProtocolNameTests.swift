// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkTLS

/// Servers that speak TLS and another protocol in it.
@Suite struct ProtocolNameTests {
  @Test(arguments: [RawTLS.Choice.other, .none])
  func `a server that chooses another protocol, or none, is refused`(
    choice: RawTLS.Choice
  ) async throws {
    let folder = try Folder()
    let files = try folder.write("server", Certificates.server)
    try await Stage.run { loop in
      let server = RawTLS(serverOf: files.chain, key: files.key, choosing: choice)
      let stage = ClientStage(on: loop, try TLSClient(.trusting()), server: server)
      #expect(!stage.shakeHands())
      #expect(stage.stream.layer?.securityFailure?.code == .noApplicationProtocol)
      stage.stream.close()
    }
  }
}
