// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkTransport
import Testing

@testable import LongLinkTLS

/// The names that clients verify.
@Suite struct NameTests {
  @Test(arguments: [
    ("server.test", "server.test", false), ("server.test.", "server.test", false),
    ("localhost", "localhost", false), ("10.0.0.7", "10.0.0.7", true), ("::1", "::1", true),
    ("[::1]", "::1", true), ("fe80::1%3", "fe80::1", true), ("a_b.test", "a_b.test", false),
  ])
  func `a name or an address is what certificates have`(
    host: String, text: String, isAddress: Bool
  ) throws {
    let name = try #require(TLSName(host))
    #expect(name.text == text)
    #expect(name.isAddress == isAddress)
  }

  static let wrong = [
    "", ".", "..", ".test", "test..", "a..test", "a test", "a\0.test", "tést",
    String(repeating: "a", count: 64), Array(repeating: "abc", count: 64).joined(separator: "."),
  ]

  @Test(arguments: wrong)
  func `what is no name is refused in a configuration`(name: String) throws {
    #expect(TLSName(name) == nil)
    var client = TLSClientConfiguration.trusting()
    client.serverName = name
    let error = #expect(throws: LongLinkError.self) { try ClientSecurity.tls(client) }
    #expect(error?.field == "security.serverName")
    #expect(error?.detail.contains("is no name or address") == true)
  }

  @Test(arguments: wrong)
  func `what is no name and was dialled secures no connection`(name: String) async throws {
    let client = try TLSClient(.trusting())
    try await Stage.run { loop in
      let below = MemoryTransport()
      let stream = client.secure(below, host: name, on: loop)
      #expect(stream.layer?.securityFailure?.code == .nameMismatch)
      #expect(stream.layer?.securityFailure?.detail.contains("is no name") == true)
      #expect(throws: SocketError.self) { try stream.finishConnecting() }
      // Nothing was sent.
      #expect(below.outbox.isEmpty)
      stream.close()
    }
  }

  @Test func `a name that ends with a dot is verified without it`() async throws {
    for (name, isFine) in [("server.test.", true), ("other.test.", false)] {
      let client = TLSClientConfiguration.trusting { $0.serverName = name }
      let (code, _) = try await World.simulate(try World.Parts(client)) { world in
        do {
          try await world.client.connect()
        } catch let error as LongLinkError {
          return error.securityFailure?.code
        }
        return nil
      }
      #expect(code == (isFine ? nil : .nameMismatch))
    }
  }
}
