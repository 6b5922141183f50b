// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLink
import LongLinkCertificates
import LongLinkServer
import LongLinkTesting
import Synchronization
import Testing

@testable import LongLinkTLS
@testable import LongLinkTransport

/// Files of certificates that cannot be used, or only some of them.
@Suite struct ReloadFailureTests {
  /// Simulations begin at this second.
  private static let beginning: Int64 = 1_767_225_600

  private static func list(of serials: [UInt64]) -> [UInt8] {
    CertificateKit.revocations(
      of: serials, by: Certificates.authority, validity: Certificates.validity)
  }

  @Test func `a certificate that has expired in use keeps no other file away`() async throws {
    let brief = Certificates.make(
      .server, ["DNS:brief"], validity: 1_700_000_000..<Self.beginning + 10)
    let setting = try ReloadSetting { configuration, folder in
      let files = try folder.write("brief", brief)
      configuration.certificates.append(
        TLSIdentity(chainFile: files.chain, keyFile: files.key))
      configuration.clientCertificates = .required(.only(Certificates.authority))
      configuration.revocationLists = [
        .file(try folder.write("revoked.pem", Self.list(of: [])))
      ]
    }
    var parts = setting.parts
    parts.clientSecurity = try .tls(
      .trusting {
        $0.certificate = TLSIdentity(Certificates.client)
        $0.resumes = false
      })
    _ = try await World.simulate(parts) { world in
      #expect(try await world.client.request(World.echo, [1]) == [1])
      try await world.simulation?.sleep(for: .seconds(30))
      // The client's certificate has this number.
      try setting.folder.write("revoked.pem", Self.list(of: [7]))
      try await world.simulation?.sleep(for: .seconds(11))
      #expect(setting.server.status.reloads == 1)
      #expect(setting.server.status.failure == nil)
      world.simulation?.network.links.last?.lose()
      try await world.simulation?.sleep(for: .seconds(2))
      await #expect(throws: LongLinkError.self) {
        try await world.client.connect()
        _ = try await world.client.request(World.echo, [1])
      }
      // A new one has to be valid.
      try setting.folder.write(
        "brief", Certificates.make(.server, ["DNS:b"], validity: 1_700_000_000..<Self.beginning))
      await setting.server.reload()
      #expect(setting.server.status.failure?.field == "security.certificates[1].chain")
    }
  }

  @Test func `a certificate that comes early is used once it is valid`() async throws {
    let setting = try ReloadSetting()
    let early = Certificates.make(
      .server, ["IP:10.0.0.1"], serial: 88, validity: Self.beginning + 100..<2_500_000_000)
    _ = try await World.simulate(setting.parts) { world in
      try setting.folder.write("server", early)
      try await world.simulation?.sleep(for: .seconds(95))
      #expect(setting.server.status.failures == 1)
      #expect(setting.server.status.failure?.detail.contains("not valid before") == true)
      #expect(setting.logged.count == 1)
      try await world.simulation?.sleep(for: .seconds(15))
      #expect(setting.server.status.reloads == 1)
      #expect(setting.server.status.failure == nil)
      #expect(setting.logged.count == 2)
    }
  }

  @Test func `a reload tries at once what has failed, and tells it again`() async throws {
    let setting = try ReloadSetting()
    let early = Certificates.make(
      .server, ["IP:10.0.0.1"], serial: 88, validity: Self.beginning + 15..<2_500_000_000)
    _ = try await World.simulate(setting.parts) { world in
      try setting.folder.write("server", early)
      try await world.simulation?.sleep(for: .seconds(11))
      await setting.server.reload()
      #expect(setting.server.status.failures == 2)
      #expect(setting.logged.count == 2)
      try await world.simulation?.sleep(for: .seconds(5))
      await setting.server.reload()
      #expect(setting.server.status.reloads == 1)
    }
  }

  @Test(
    arguments: [1_700_000_000..<1_760_000_000, 4_000_000_000..<4_100_000_000] as [Range<Int64>])
  func `dates are judged where no server runs, too`(validity: Range<Int64>) async throws {
    let setting = try ReloadSetting()
    try setting.folder.write(
      "server", Certificates.make(.server, ["IP:10.0.0.1"], validity: validity))
    await setting.server.reload()
    #expect(setting.server.status.reloads == 0)
    #expect(setting.server.status.failure?.field == "security.certificates[0].chain")
    #expect(setting.server.status.lastFailure != nil)
  }

  @Test func `a file whose time was set back has changed`() async throws {
    let setting = try ReloadSetting()
    let path = try setting.folder.write("server.pem", Certificates.server.certificate)
    let time = Date(timeIntervalSince1970: 1_700_000_000)
    func setBack() throws {
      try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: path)
    }
    try setBack()
    let former = try FileState(at: path)
    var now = former
    // The clock of a file system may stand still for some milliseconds.
    for _ in 0..<5_000 where now == former {
      // The same file, with as many bytes, as one that is written in place.
      let handle = try #require(FileHandle(forWritingAtPath: path))
      try handle.write(contentsOf: Self.swapped(Certificates.server.certificate))
      try handle.close()
      try setBack()
      now = try FileState(at: path)
    }
    #expect(now.identity == former.identity)
    #expect(now != former)
    await setting.server.reload()
    #expect(setting.server.status.failures == 1)
  }

  /// Damages a certificate.
  private static func swapped(_ bytes: [UInt8]) -> [UInt8] {
    var bytes = bytes
    bytes[100] = bytes[100] == 65 ? 66 : 65
    return bytes
  }

  @Test func `files that cannot be used are due until they can be, and are news once`() throws {
    let folder = try Folder()
    let path = try folder.write("roots.pem", Certificates.authority.certificate)
    let states = TLSFileStates.now([path, "/nowhere"])
    var known = TLSFileStates(states)
    #expect(!known.isDue(states))
    let error = LongLinkError.configuration("security.roots", "it is damaged")
    let other = LongLinkError.configuration("security.roots", "it is empty")
    let news = [error, error, other].map { known.fail(states, $0) }
    #expect(news == [true, false, true])
    #expect(known.isDue(states))
    known.use(states)
    #expect(!known.isDue(states))
    try folder.write("roots.pem", [])
    #expect(known.isDue(TLSFileStates.now([path, "/nowhere"])))
  }

  @Test func `a client is told once of files that it cannot use`() async throws {
    let folder = try Folder()
    let file = try folder.write("roots.pem", Certificates.authority.certificate)
    let failures = Mutex<[String]>([])
    var client = TLSClientConfiguration()
    client.roots = .only(.file(file))
    client.onReloadFailure = { error in failures.withLock { $0.append(error.field ?? "") } }
    let parts = World.Parts(try .tls(client), try .tls(.with()))
    _ = try await World.simulate(parts) { world in
      for round in 0..<5 {
        if round == 1 { try folder.write("roots.pem", []) }
        #expect(try await world.client.request(World.echo, [1]) == [1])
        world.simulation?.network.links.last?.lose()
        try await world.simulation?.sleep(for: .seconds(15))
      }
      try folder.write("roots.pem", Certificates.otherAuthority.certificate)
      await #expect(throws: LongLinkError.self) {
        for _ in 0..<3 {
          _ = try await world.client.request(World.echo, [1])
          world.simulation?.network.links.last?.lose()
          try await world.simulation?.sleep(for: .seconds(15))
        }
      }
    }
    #expect(failures.withLock { $0 } == ["security.roots"])
  }
}
