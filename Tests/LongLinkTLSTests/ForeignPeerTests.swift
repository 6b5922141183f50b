// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLink
import LongLinkCertificates
import LongLinkServer
import LongLinkTLS
import LongLinkTestSupport
import LongLinkTesting
import Logging
import Testing

/// Clients and servers of TLS that nobody here wrote.
@Suite(.unless(Program.problem("openssl") ?? Program.problem("python3")), .serialized)
struct ForeignPeerTests {
  private static let hello = WireFrame.hello().bytes
  private static let ping = WireFrame.ping([7, 7, 7]).bytes

  /// Whether bytes have a welcome, and then the answer to the ping.
  private func hasAnswers(_ bytes: [UInt8]) -> Bool {
    bytes.first == WireFrame.Kind.welcome.rawValue && bytes.firstRange(of: [7, 7, 7]) != nil
  }

  private func port(_ server: LongLinkServer) -> String { "\(server.addresses[0].port ?? 0)" }

  @Test func `openssl's client talks to the server`() async throws {
    let folder = try Folder()
    let authority = try folder.write("ca.pem", Certificates.authority.certificate)
    try await World.overLoopback(World.Parts()) { world in
      let program = try Program(
        "openssl", "s_client", "-connect", "127.0.0.1:\(port(world.server))", "-alpn",
        "longlink/1", "-CAfile", authority, "-verify_return_error", "-verify_ip", "127.0.0.1",
        "-quiet")
      try program.write(Self.hello + Self.ping)
      let answer = await program.read(until: hasAnswers)
      #expect(hasAnswers(answer))
    }
  }

  @Test func `a flood of new keys from openssl's client ends the connection`() async throws {
    let folder = try Folder()
    let authority = try folder.write("ca.pem", Certificates.authority.certificate)
    try await World.overLoopback(World.Parts()) { world in
      let program = try Program(
        "sh", "-c",
        """
        exec openssl s_client -connect 127.0.0.1:\(port(world.server)) -alpn longlink/1 \
        -CAfile \(authority) 2>&1
        """)
      _ = await program.line(with: "Verify return code")
      var updates = 0
      while updates < 100 {
        // It looks at the first letter of what it reads.
        do { try program.write(Array("K\n".utf8)) } catch { break }
        updates += 1
        let all = await program.read {
          String(decoding: $0, as: UTF8.self).components(separatedBy: "KEYUPDATE").count > updates
        }
        let count = String(decoding: all, as: UTF8.self).components(separatedBy: "KEYUPDATE").count
        guard count > updates else { break }
      }
      #expect((32...60).contains(updates))
      #expect(await world.server.counters().openConnections <= 1)
      #expect(try await world.client.request(World.echo, [1]) == [1])
    }
  }

  @Test func `openssl's client without the protocol is refused`() async throws {
    try await World.overLoopback(World.Parts()) { world in
      for arguments in [["-alpn", "h2"], ["-noservername"], ["-tls1_2", "-alpn", "longlink/1"]] {
        let program = try Program(
          "sh", "-c",
          """
          exec openssl s_client -connect 127.0.0.1:\(port(world.server)) \
          \(arguments.joined(separator: " ")) 2>&1
          """
        )
        let alert = arguments[0] == "-tls1_2" ? "alert protocol version" : "application protocol"
        #expect(await program.line(with: alert) != nil, "\(arguments)")
      }
    }
  }

  @Test func `the client talks to openssl's server`() async throws {
    let folder = try Folder()
    let pair = try folder.write("server", Certificates.server)
    let program = try Program(
      "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", pair.chain, "-key", pair.key,
      "-alpn", "longlink/1", "-naccept", "1")
    let line = try #require(await program.line(with: "ACCEPT 127"))
    let client = try client(try #require(line.split(separator: ":").last.flatMap { UInt16($0) }))
    async let connected: Void = client.connect()
    _ = await program.line(with: "Secure Renegotiation")
    try program.write(WireFrame.welcome().bytes)
    try await connected
    await client.close()
  }

  @Test func `openssl's server without the protocol is refused`() async throws {
    let folder = try Folder()
    let pair = try folder.write("server", Certificates.server)
    for (arguments, code) in [
      ([], SecurityFailure.Code.noApplicationProtocol), (["-alpn", "h2"], .noApplicationProtocol),
      (["-alpn", "longlink/1", "-tls1_2"], .noCommonVersion),
    ] {
      let command = [
        "exec openssl s_server -accept 127.0.0.1:0 -cert \(pair.chain) -key \(pair.key)",
        arguments.joined(separator: " "),
      ]
      let program = try Program("sh", "-c", command.joined(separator: " "))
      let line = try #require(await program.line(with: "ACCEPT 127"))
      let client = try client(try #require(line.split(separator: ":").last.flatMap { UInt16($0) }))
      let error = await #expect(throws: LongLinkError.self) { try await client.connect() }
      #expect(error?.securityFailure?.code == code)
      await client.close()
    }
  }

  @Test func `Python talks to the server`() async throws {
    let folder = try Folder()
    let authority = try folder.write("ca.pem", Certificates.authority.certificate)
    // The server ends connections that say nothing more.
    try await World.overLoopback(World.Parts()) { world in
      let frames = (Self.hello + Self.ping).map { String(format: "%02x", $0) }.joined()
      let program = try Program(
        "python3", Program.script, "call", port(world.server), authority, frames)
      #expect(await program.line(with: "TLS") == "TLSv1.3 longlink/1")
      #expect(await program.line(with: "070707")?.hasPrefix("0b") == true)
      await world.server.shutDown(within: .zero)
      // An end without the one that TLS protects would be an error in Python.
      #expect(await program.line(with: "end") == "end")
    }
  }

  @Test func `the client talks to Python`() async throws {
    let folder = try Folder()
    let pair = try folder.write("server", Certificates.server)
    let welcome = WireFrame.welcome().bytes.map { String(format: "%02x", $0) }.joined()
    let program = try Program("python3", Program.script, "serve", pair.chain, pair.key, welcome)
    let line = try #require(await program.line(with: "port "))
    let client = try client(try #require(UInt16(line.dropFirst(5))))
    try await client.connect()
    await client.close()
    #expect(await program.line(with: "TLS") == "TLSv1.3 longlink/1")
    #expect(await program.line(with: "end") == "end")
  }

  private func client(_ port: UInt16) throws -> LongLinkClient {
    var configuration = ClientConfiguration(servers: [.host("127.0.0.1", port: port)])
    configuration.logger.logLevel = .critical
    configuration.security = try .tls(.trusting())
    return try LongLinkClient(configuration)
  }
}
