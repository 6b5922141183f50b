// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCertificates
import LongLinkServer
import LongLinkTLS
import LongLinkTestSupport
import Testing

/// An nginx between clients and servers, which has TLS on one of its sides.
@Suite(.unless(NginxStream.problem), .serialized) struct NginxStreamTests {
  private func server(_ security: ServerSecurity?) async throws -> LongLinkServer {
    var parts = World.Parts(nil, security)
    parts.server.listen = [.host("127.0.0.1", port: 0)]
    let server = try World.makeServer(parts, on: [])
    try await server.start()
    return server
  }

  private func client(_ port: UInt16, _ security: ClientSecurity?) throws -> LongLinkClient {
    var parts = World.Parts(security, nil)
    parts.client.servers = [ServerEntry(.host("127.0.0.1", port: port))]
    parts.client.security = security
    // It connects again until nginx listens.
    parts.client.timeouts.request = .seconds(60)
    return try LongLinkClient(parts.client)
  }

  private func converse(_ client: LongLinkClient) async throws {
    for size in [0, 1, 1_000, 500_000] {
      let body = [UInt8](repeating: 7, count: size)
      #expect(try await client.request(World.echo, body) == body)
    }
  }

  @Test func `nginx ends TLS in front of a plain server`() async throws {
    let folder = try Folder()
    let files = try folder.write("server", Certificates.server)
    let server = try await server(nil)
    let nginx = try NginxStream(
      to: server.addresses[0].port ?? 0, in: folder,
      """
      ssl_certificate \(files.chain);
      ssl_certificate_key \(files.key);
      ssl_protocols TLSv1.3;
      ssl_alpn longlink/1;
      """)
    let client = try client(nginx.port, try .tls(.trusting()))
    try await converse(client)
    await client.close()
    // The server's end reaches the client in good order.
    let other = try self.client(nginx.port, try .tls(.trusting()))
    try await converse(other)
    await server.shutDown(within: .zero)
    await other.close()
  }

  @Test func `nginx that does not name the protocol is refused`() async throws {
    let folder = try Folder()
    let files = try folder.write("server", Certificates.server)
    let server = try await server(nil)
    let nginx = try NginxStream(
      to: server.addresses[0].port ?? 0, in: folder,
      "ssl_certificate \(files.chain); ssl_certificate_key \(files.key); ssl_protocols TLSv1.3;")
    let client = try client(nginx.port, try .tls(.trusting()))
    while true {
      do throws(LongLinkError) {
        try await client.connect()
        Issue.record("a connection without the protocol has opened")
        break
      } catch {
        // nginx may not listen yet.
        guard error.securityFailure != nil else { continue }
        #expect(error.securityFailure?.code == .noApplicationProtocol)
        break
      }
    }
    await client.close()
    await server.shutDown(within: .zero)
  }

  /// nginx has no directive for the protocols that it names to servers.
  @Test func `nginx cannot begin TLS towards a server, and the server says why`() async throws {
    let folder = try Folder()
    let authority = try folder.write("ca.pem", Certificates.authority.certificate)
    let server = try await server(try .tls(.with()))
    let nginx = try NginxStream(
      to: server.addresses[0].port ?? 0, in: folder,
      """
      proxy_ssl on;
      proxy_ssl_protocols TLSv1.3;
      proxy_ssl_verify on;
      proxy_ssl_name server.test;
      proxy_ssl_server_name on;
      proxy_ssl_trusted_certificate \(authority);
      """)
    let client = try client(nginx.port, nil)
    while await server.counters().endings["securityFailed"] ?? 0 == 0 {
      await #expect(throws: LongLinkError.self) { try await client.connect() }
    }
    await client.close()
    await server.shutDown(within: .zero)
    let log = try folder.read("error.log")
    #expect(log.contains("no application protocol"))
  }
}
