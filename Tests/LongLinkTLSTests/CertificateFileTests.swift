// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLink
import LongLinkCertificates
import LongLinkTLS
import LongLinkTesting
import Testing

/// Certificates that are made for trials.
@Suite struct CertificateFileTests {
  @Test func `the files of a trial secure a client and a server`() async throws {
    let folder = try Folder()
    let files = CertificateFiles(
      serverNames: ["IP:10.0.0.1"], serial: 1, validity: Certificates.validity)
    try files.write(to: folder.path)
    try files.write(to: folder.path)
    for name in ["ca", "ca-key", "server", "server-key", "client", "client-key"] {
      let file = "\(folder.path)/\(name).pem"
      let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions]
      #expect(mode as? Int == 0o600)
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).count == 6)
    let roots = TLSRoots.only(.file("\(folder.path)/ca.pem"))
    var client = TLSClientConfiguration()
    client.roots = roots
    client.certificate = TLSIdentity(
      chainFile: "\(folder.path)/client.pem", keyFile: "\(folder.path)/client-key.pem")
    var server = TLSServerConfiguration(
      chainFile: "\(folder.path)/server.pem", keyFile: "\(folder.path)/server-key.pem")
    server.clientCertificates = .required(roots)
    let (answer, _) = try await World.simulate(try World.Parts(client, server)) { world in
      try await world.client.request(World.echo, [1])
    }
    #expect(answer == [1])
    #expect(throws: CertificateFileError.self) { try files.write(to: "/nowhere") }
  }
}
