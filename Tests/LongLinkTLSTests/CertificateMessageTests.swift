// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCertificates
import LongLinkCore
import LongLinkTestSupport
import Testing

@testable import LongLinkTLS

/// What a peer may make OpenSSL decode before it has proved anything.
@Suite struct CertificateMessageTests {
  private static let problem = Program.problem("openssl")

  /// Makes a certificate, with a key of a kind of OpenSSL's, in a folder.
  private static func make(_ key: [String], in folder: Folder) throws -> (
    chain: String, key: String
  ) {
    let (chain, keyFile) = ("\(folder.path)/odd.pem", "\(folder.path)/odd-key.pem")
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments =
      ["openssl", "req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=odd", "-newkey"] + key
      + ["-keyout", keyFile, "-out", chain]
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    try #require(process.terminationStatus == 0)
    return (chain, keyFile)
  }

  private static func server() throws -> TLSServer {
    try TLSServer(.with { $0.clientCertificates = .requested(.only(Certificates.authority)) })
  }

  /// A client shows the test's own certificate, and others after it.
  private static func expect(
    _ detail: String, of others: [UInt8], version: CInt = 0x0304
  ) async throws {
    let folder = try Folder()
    let chain = try folder.write("chain.pem", Certificates.client.certificate + others)
    let key = try folder.write("key", Certificates.client.key)
    try await Stage.run { loop in
      var configuration = TLSServerConfiguration.with {
        $0.clientCertificates = .requested(.only(Certificates.authority))
      }
      configuration.minimumVersion = .tls12
      let stage = Stage(
        on: loop, try TLSServer(configuration),
        client: RawTLS(version: version, chain: chain, key: key))
      stage.shakeHands()
      let failure = stage.stream.layer?.securityFailure
      #expect(failure?.code == .invalidCertificate, "\(detail): \(String(describing: failure))")
      #expect(failure?.detail.contains(detail) == true, "\(String(describing: failure))")
      stage.stream.close()
    }
  }

  @Test(.unless(problem), arguments: [0x0303, 0x0304] as [CInt])
  func `a client's keys are of known kinds, or are not decoded`(version: CInt) async throws {
    for key in [
      // Points on a curve of the peer's own take long to find.
      ["ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-pkeyopt", "ec_param_enc:explicit"],
      ["ec", "-pkeyopt", "ec_paramgen_curve:sect571r1"],
      ["ec", "-pkeyopt", "ec_paramgen_curve:brainpoolP256r1"],
    ] {
      let folder = try Folder()
      let odd = try Self.make(key, in: folder)
      let bytes = Array(try Data(contentsOf: URL(filePath: odd.chain)))
      try await Self.expect("key that is not used here", of: bytes, version: version)
    }
  }

  @Test(.unless(problem), arguments: ["rsa:2048", "ed25519", "ed448"])
  func `keys of the usual kinds are decoded`(kind: String) async throws {
    let folder = try Folder()
    let pair = try Self.make([kind], in: folder)
    let others = Array(try Data(contentsOf: URL(filePath: pair.chain)))
    let chain = try folder.write("chain.pem", Certificates.client.certificate + others)
    let key = try folder.write("key", Certificates.client.key)
    try await Stage.run { loop in
      let stage = Stage(on: loop, try Self.server(), client: RawTLS(chain: chain, key: key))
      #expect(stage.shakeHands(), "\(String(describing: stage.stream.layer?.securityFailure))")
      #expect(stage.stream.layer?.security?.peerCertificate != nil)
      stage.stream.close()
    }
  }

  @Test(arguments: [0x0303, 0x0304] as [CInt])
  func `a client's certificates are few, however they are sent`(
    version: CInt
  ) async throws {
    // A client of OpenSSL 3.2 or later compresses them if the server offers that.
    let others = (0..<10).flatMap { Certificates.make(nil, ["DNS:a\($0).test"]).certificate }
    try await Self.expect("too many names", of: others, version: version)
  }

  @Test func `a client's certificates have few parts`() async throws {
    let large = Certificates.make(nil, (0..<500).map { "DNS:a\($0).test" }).certificate
    try await Self.expect("too many names", of: large)
  }

  /// A server shows its certificate and others after it; returns what its client finds.
  private static func failure(withServerOf others: [UInt8]) async throws -> SecurityFailure? {
    let folder = try Folder()
    let chain = try folder.write("chain.pem", Certificates.server.certificate + others)
    let key = try folder.write("key", Certificates.server.key)
    return try await Stage.run { loop in
      let server = RawTLS(serverOf: chain, key: key)
      let stage = ClientStage(on: loop, try TLSClient(.trusting()), server: server)
      defer { stage.stream.close() }
      return stage.shakeHands() ? nil : stage.stream.layer?.securityFailure
    }
  }

  @Test func `a server's certificates are ten at most, and have few parts`() async throws {
    func other(_ names: Int) -> [UInt8] {
      Certificates.make(nil, (0..<names).map { "DNS:a\($0).test" }).certificate
    }
    #expect(try await Self.failure(withServerOf: (0..<9).flatMap { _ in other(1) }) == nil)
    let many = try await Self.failure(withServerOf: (0..<10).flatMap { _ in other(1) })
    #expect(many?.code == .invalidCertificate)
    #expect(
      many?.detail.contains("more than 10 certificates") == true, "\(String(describing: many))")
    #expect(try await Self.failure(withServerOf: other(3_000)) == nil)
    let crowded = try await Self.failure(withServerOf: other(4_500))
    #expect(crowded?.detail.contains("too many names") == true, "\(String(describing: crowded))")
  }

  @Test(.unless(problem)) func `a server's keys are of known kinds, too`() async throws {
    let folder = try Folder()
    let odd = try Self.make(
      ["ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-pkeyopt", "ec_param_enc:explicit"],
      in: folder)
    let bytes = Array(try Data(contentsOf: URL(filePath: odd.chain)))
    let failure = try await Self.failure(withServerOf: bytes)
    #expect(failure?.code == .invalidCertificate, "\(String(describing: failure))")
    #expect(failure?.detail.contains("key that is not used here") == true)
  }

  // MARK: Hellos

  /// A hello with one extension.
  private static func hello(_ type: UInt8, _ content: [UInt8]) -> [UInt8] {
    func vector(_ bytes: [UInt8], _ size: Int) -> [UInt8] {
      (0..<size).reversed().map { UInt8(truncatingIfNeeded: bytes.count >> (8 * $0)) } + bytes
    }
    let versions: [UInt8] = [0, 43, 0, 3, 2, 3, 4]
    let protocols = [0, 16] + vector(vector(vector(Array("longlink/1".utf8), 1), 2), 2)
    let extensions = versions + protocols + [0, type] + vector(content, 2)
    let body =
      [3, 3] + [UInt8](repeating: 7, count: 32) + [0] + [0, 2, 0x13, 1] + [1, 0]
      + vector(extensions, 2)
    return [22, 3, 1] + vector([1] + vector(body, 3), 2)
  }

  @Test func `a hello offers few groups, and few keys for them, and has few names`() async throws {
    func list(_ bytes: [UInt8]) -> [UInt8] {
      [UInt8(bytes.count >> 8), UInt8(bytes.count & 255)] + bytes
    }
    let groups = { (count: Int) in
      Self.hello(10, list((0..<count).flatMap { [0x7F, UInt8(truncatingIfNeeded: $0)] }))
    }
    let keys = { (count: Int) in
      Self.hello(51, list((0..<count).flatMap { [0x7F, UInt8($0), 0, 1, 0] }))
    }
    // An empty name, as the only one of an authority or responder, takes few bytes and much memory.
    let authorities = { (count: Int) in
      Self.hello(47, list((0..<count).flatMap { _ in [0, 2, 0x30, 0] }))
    }
    let responders = { (count: Int) in
      Self.hello(5, [1] + list((0..<count).flatMap { _ in [0, 4, 0xA2, 2, 4, 0] }) + [0, 0])
    }
    for (hello, isCrowded) in [
      (groups(64), false), (groups(65), true), (keys(8), false), (keys(9), true),
      (authorities(512), false), (authorities(513), true), (responders(169), false),
      (responders(171), true),
    ] {
      try await Stage.run { loop in
        let stage = Stage(on: loop, try Self.server(), client: RawTLS())
        stage.send(hello)
        let detail = stage.stream.layer?.securityFailure?.detail ?? "none"
        #expect(detail.contains("more than 64 groups, or 8 keys") == isCrowded, "\(detail)")
        stage.stream.close()
      }
    }
  }
}
