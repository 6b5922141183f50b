// SPDX-License-Identifier: Apache-2.0

import LongLinkCertificates
import LongLinkTransport
import Testing

@testable import LongLinkTLS

/// TLS 1.2, with peers that speak nothing newer.
@Suite struct OldVersionTests {
  private static let version: CInt = 0x0303
  private static let pair = Certificates.make(.server, ["DNS:server.test"], keyKind: .p256)

  private static func server(
    _ change: (inout TLSServerConfiguration) -> Void = { _ in }
  ) throws -> TLSServer {
    try TLSServer(
      .with(pair) {
        $0.minimumVersion = .tls12
        change(&$0)
      })
  }

  @Test func `a server speaks it with an old client, which resumes its session`() async throws {
    let folder = try Folder()
    let files = try folder.write(
      "client", Certificates.make(.client, ["DNS:old.test"], keyKind: .p256))
    let server = try Self.server {
      $0.clientCertificates = .required(.only(Certificates.authority))
    }
    try await Stage.run { loop in
      let first = RawTLS(version: Self.version, chain: files.chain, key: files.key)
      for isResumed in [false, true] {
        let client = isResumed ? RawTLS(like: first) : first
        if isResumed { client.resume(first) }
        let stage = Stage(on: loop, server, client: client)
        #expect(stage.shakeHands())
        let security = try #require(stage.stream.layer?.security)
        #expect(security.version == "TLSv1.2")
        #expect(security.isResumed == isResumed)
        #expect(client.isResumed == isResumed)
        #expect(security.peerCertificate?.names == [.dns("old.test")])
        for size in [1, 20_000] {
          let bytes = [UInt8](repeating: UInt8(size & 0xFF), count: size)
          stage.send(client.write(bytes))
          stage.readAll()
          #expect(stage.bytes.suffix(size) == bytes[...])
          #expect(try stage.write(bytes) == size)
          client.receive(stage.below.takeOutput())
          #expect(client.read() == bytes)
        }
        stage.send(client.close())
        stage.readAll()
        #expect(stage.ending == "end")
        stage.stream.close()
      }
    }
  }

  @Test func `a client speaks it with an old server, and resumes its session`() async throws {
    let folder = try Folder()
    let files = try folder.write("server", Self.pair)
    let client = try TLSClient(.trusting { $0.minimumVersion = .tls12 })
    try await Stage.run { loop in
      let first = RawTLS(serverOf: files.chain, key: files.key, version: Self.version)
      for isResumed in [false, true] {
        let server = isResumed ? RawTLS(like: first) : first
        let stage = ClientStage(on: loop, client, server: server)
        #expect(stage.shakeHands())
        #expect(stage.stream.layer?.security?.version == "TLSv1.2")
        #expect(stage.stream.layer?.security?.isResumed == isResumed)
        stage.exchange()
        try ClientStage.write([1, 2], to: stage.stream)
        stage.exchange()
        #expect(server.read() == [1, 2])
        stage.below.inbox += server.write([3])
        #expect(try stage.read() == [3])
        stage.stream.close()
      }
    }
  }

  @Test func `a client does not begin a new handshake when its server asks for one`() async throws {
    let folder = try Folder()
    let files = try folder.write("server", Self.pair)
    try await Stage.run { loop in
      let server = RawTLS(serverOf: files.chain, key: files.key, version: Self.version)
      let client = try TLSClient(.trusting { $0.minimumVersion = .tls12 })
      let stage = ClientStage(on: loop, client, server: server)
      #expect(stage.shakeHands())
      stage.exchange()
      stage.below.inbox += server.renegotiate()
      #expect(try stage.read() == [])
      (stage.stream as? TLSTransport)?.turnEnds()
      // An alert, and no hello.
      #expect(stage.below.takeOutput().first == 21)
      stage.stream.close()
    }
  }

  @Test func `neither side speaks it unless it is allowed`() async throws {
    let folder = try Folder()
    let files = try folder.write("server", Self.pair)
    try await Stage.run { loop in
      let server = RawTLS(serverOf: files.chain, key: files.key, version: Self.version)
      let stage = ClientStage(on: loop, try TLSClient(.trusting()), server: server)
      #expect(!stage.shakeHands())
      #expect(stage.stream.layer?.securityFailure?.code == .noCommonVersion)
      stage.stream.close()
    }
  }
}
