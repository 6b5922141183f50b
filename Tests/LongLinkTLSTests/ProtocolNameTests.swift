// SPDX-License-Identifier: Apache-2.0

import LongLinkTransport
import Testing

@testable import LongLinkTLS

/// Servers that speak TLS and another protocol in it.
@Suite struct ProtocolNameTests {
  private final class Nobody: StreamHandler {
    func streamReady(_ readiness: Readiness, token: UInt64) {}
  }

  @Test(arguments: [true, false])
  func `a server that chooses another protocol, or none, is refused`(
    choosesOther: Bool
  ) async throws {
    let folder = try Folder()
    let files = try folder.write("server", Certificates.server)
    let client = try TLSClient(.trusting())
    try await Stage.run { loop in
      let server = RawTLS(serverOf: files.chain, key: files.key, choosesOther: choosesOther)
      let below = MemoryStream()
      let stream = client.secure(below, host: "server.test", on: loop)
      stream.attach(Nobody(), token: 0)
      stream.setInterest([.read, .write])
      for _ in 0..<6 where stream.securityFailure == nil {
        below.deliver()
        (stream as? TLSStream)?.turnEnds()
        server.receive(below.takeOutput())
        _ = server.handshake()
        below.inbox += server.takeOutput()
      }
      #expect(stream.securityFailure?.code == .noApplicationProtocol)
      stream.close()
    }
  }
}
