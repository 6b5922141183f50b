// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLink
import LongLinkCertificates
import LongLinkServer
import LongLinkTesting
import Testing

@testable import LongLinkTLS

/// Files of certificates that are replaced while a server runs.
@Suite struct ReloadTests {
  private static let next = ReloadSetting.next

  @Test func `new files are used for new connections, and old ones stay`() async throws {
    let setting = try ReloadSetting()
    _ = try await World.simulate(setting.parts) { world in
      _ = try await world.client.request(World.echo, [1])
      try setting.folder.write("server", Self.next)
      try await world.simulation?.sleep(for: .seconds(11))
      #expect(setting.server.status.reloads == 1)
      #expect(setting.server.status.certificates.first?.names.last == .dns("next"))
      #expect(setting.server.status.lastReload != nil)
      #expect(try await world.client.request(World.echo, [1]) == [1])
      #expect(world.simulation?.network.links.count == 1)
      world.simulation?.network.links.last?.lose()
      #expect(try await world.client.request(World.echo, [1]) == [1])
    }
    #expect(
      setting.logged == [
        "notice Files of certificates were replaced; new connections use them"
      ])
  }

  @Test func `files that do not fit are told once, and the old ones stay`() async throws {
    let setting = try ReloadSetting()
    _ = try await World.simulate(setting.parts) { world in
      // The new certificate without its key.
      try setting.folder.write("server.pem", Self.next.certificate)
      try await world.simulation?.sleep(for: .seconds(65))
      #expect(setting.server.status.failures == 1)
      #expect(setting.server.status.failure?.field == "security.certificates[0].key")
      #expect(setting.server.status.failure?.detail.contains("server-key.pem") == true)
      #expect(setting.server.status.reloads == 0)
      #expect(try await world.client.request(World.echo, [1]) == [1])
      try setting.folder.write("server-key.pem", Self.next.key)
      try await world.simulation?.sleep(for: .seconds(11))
      #expect(setting.server.status.reloads == 1)
      #expect(setting.server.status.failure == nil)
    }
    #expect(setting.logged.count == 2)
  }

  @Test(arguments: ["expired", "future", "garbage", "missing", "empty"])
  func `a certificate that nobody could use is not taken`(kind: String) async throws {
    let setting = try ReloadSetting()
    _ = try await World.simulate(setting.parts) { world in
      switch kind {
      case "expired", "future":
        let validity: Range<Int64> =
          kind == "expired" ? 1_700_000_000..<1_760_000_000 : 1_900_000_000..<2_000_000_000
        try setting.folder.write(
          "server", Certificates.make(.server, ["IP:10.0.0.1"], validity: validity))
      case "missing":
        try FileManager.default.removeItem(atPath: "\(setting.folder.path)/server.pem")
      case "empty": try setting.folder.write("server.pem", [])
      default: try setting.folder.write("server.pem", Array("-----BEGIN CERT".utf8))
      }
      await setting.server.reload()
      let status = setting.server.status
      #expect(status.failures == 1 && status.reloads == 0)
      #expect(status.failure?.detail.contains("server.pem") == true)
      #expect(try await world.client.request(World.echo, [1]) == [1])
    }
  }

  @Test func `a symbolic link that is swapped is a change`() async throws {
    let folder = try Folder()
    for (name, pair) in [("one", Certificates.server), ("two", Self.next)] {
      try FileManager.default.createDirectory(
        atPath: "\(folder.path)/\(name)", withIntermediateDirectories: false)
      try folder.write("\(name)/server", pair)
    }
    let link = "\(folder.path)/current"
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "one")
    let server = try TLSServer(
      TLSServerConfiguration(chainFile: "\(link)/server.pem", keyFile: "\(link)/server-key.pem"))
    try FileManager.default.removeItem(atPath: link)
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "two")
    await server.reload()
    #expect(server.status.reloads == 1)
    #expect(server.status.certificates.first?.names.last == .dns("next"))
  }

  @Test func `authorities of clients are replaced, and tickets do not get around them`()
    async throws
  {
    let setting = try ReloadSetting { configuration, folder in
      let file = try folder.write("clients.pem", Certificates.authority.certificate)
      configuration.clientCertificates = .required(.only(.file(file)))
    }
    var parts = setting.parts
    parts.clientSecurity = try .tls(
      .trusting { $0.certificate = TLSIdentity(Certificates.client) })
    _ = try await World.simulate(parts) { world in
      #expect(try await world.client.request(World.identity, []) == Array("false 2".utf8))
      try setting.folder.write("clients.pem", Certificates.otherAuthority.certificate)
      await setting.server.reload()
      #expect(setting.server.status.reloads == 1)
      world.simulation?.network.links.last?.lose()
      try await world.simulation?.sleep(for: .seconds(1))
      await #expect(throws: LongLinkError.self) {
        try await world.client.connect()
        _ = try await world.client.request(World.echo, [1])
      }
    }
  }

  @Test func `connections are moved where that is wanted`() async throws {
    let setting = try ReloadSetting { configuration, _ in configuration.movesConnections = true }
    let (connects, _) = try await World.simulate(setting.parts) { world in
      _ = try await world.client.request(World.echo, [1])
      try setting.folder.write("server", Self.next)
      await setting.server.reload()
      try await world.simulation?.sleep(for: .seconds(60))
      #expect(try await world.client.request(World.echo, [1]) == [1])
      return await world.client.counters().connects
    }
    #expect(connects == 2)
  }

  @Test func `an expiry is announced daily from two weeks before`() async throws {
    // A simulation begins at 1,767,225,600.
    let end = Int64(1_767_225_600) + 16 * 86_400
    let setting = try ReloadSetting(
      Certificates.make(.server, ["IP:10.0.0.1"], validity: 1_700_000_000..<end))
    var simulated = Simulation.Configuration()
    simulated.timeLimit = .seconds(20 * 86_400)
    let simulation = Simulation(seed: 1, configuration: simulated)
    try await simulation.run {
      var configuration = setting.parts.server
      configuration.security = setting.parts.serverSecurity
      let server = try LongLinkServer(configuration, on: [simulation.eventLoop(named: "server")])
      try await server.start()
      try await simulation.sleep(for: .seconds(86_400))
      #expect(setting.logged == [])
      try await simulation.sleep(for: .seconds(4 * 86_400))
      await server.shutDown(within: .zero)
    }
    #expect(
      setting.logged
        == Array(repeating: "error A certificate expires soon. Replace its file.", count: 4))
  }

  @Test(arguments: [
    (1_700_000_000..<1_760_000_000, "A certificate has expired; clients refuse it."),
    (1_800_000_000..<2_500_000_000, "A certificate is not valid yet; clients refuse it."),
  ])
  func `a server that starts with a certificate out of its time says so and runs`(
    validity: Range<Int64>, text: String
  ) async throws {
    let setting = try ReloadSetting(
      Certificates.make(.server, ["IP:10.0.0.1"], validity: validity))
    _ = try await World.simulate(setting.parts) { world in
      #expect(setting.logged.count == 1)
      #expect(setting.logged.first?.hasPrefix("error \(text)") == true)
      #expect(await world.server.counters().openConnections == 0)
      try setting.folder.write("server", Self.next)
      await setting.server.reload()
      #expect(try await world.client.request(World.echo, [1]) == [1])
    }
  }

  @Test func `of servers that share certificates and a loop, the right one stops`() async throws {
    let setting = try ReloadSetting()
    let simulation = Simulation(seed: 1)
    try await simulation.run {
      let loop = simulation.eventLoop(named: "servers")
      func start(_ port: UInt16) async throws -> LongLinkServer {
        var configuration = setting.parts.server
        configuration.security = setting.parts.serverSecurity
        configuration.listen = [.host("10.0.0.1", port: port)]
        let server = try LongLinkServer(configuration, on: [loop])
        try await server.start()
        return server
      }
      let first = try await start(7_001)
      let second = try await start(7_002)
      await second.shutDown(within: .zero)
      try setting.folder.write("server", Self.next)
      try await simulation.sleep(for: .seconds(11))
      #expect(setting.server.status.reloads == 1)
      let third = try await start(7_003)
      await first.shutDown(within: .zero)
      try setting.folder.write("server", Certificates.server)
      try await simulation.sleep(for: .seconds(11))
      #expect(setting.server.status.reloads == 2)
      await third.shutDown(within: .zero)
      // Nobody looks any more.
      try setting.folder.write("server", Self.next)
      try await simulation.sleep(for: .seconds(60))
      #expect(setting.server.status.reloads == 2)
    }
    #expect(setting.logged.count == 2)
    #expect(simulation.pendingTimers == [])
  }

  @Test func `reloads under load break nothing`() async throws {
    let setting = try ReloadSetting()
    let (failures, _) = try await World.simulate(setting.parts) { world in
      guard let simulation = world.simulation else { return -1 }
      let loop = simulation.eventLoop(named: "clients")
      let configuration = { () throws -> ClientConfiguration in
        var configuration = setting.parts.client
        configuration.security = setting.parts.clientSecurity
        return configuration
      }
      var failures = 0
      var standing: [LongLinkClient] = []
      for round in 0..<60 {
        if round % 3 == 0 {
          try setting.folder.write("server", round % 2 == 0 ? Self.next : Certificates.server)
          await setting.server.reload()
        }
        let client = try LongLinkClient(try configuration(), on: loop)
        standing.append(client)
        for client in standing.suffix(10) {
          do { _ = try await client.request(World.echo, [1]) } catch { failures += 1 }
        }
      }
      var connects: UInt64 = 0
      for client in standing { connects += await client.counters().connects }
      #expect(connects == 60)
      for client in standing { await client.close() }
      return failures
    }
    #expect(failures == 0)
    #expect(setting.server.status.reloads >= 19)
  }

  @Test func `a client looks at its files again when it connects`() async throws {
    let folder = try Folder()
    let file = try folder.write("roots.pem", Certificates.otherAuthority.certificate)
    var client = TLSClientConfiguration()
    client.roots = .only(.file(file))
    let parts = World.Parts(try .tls(client), try .tls(.with()))
    let (answer, _) = try await World.simulate(parts) { world in
      await #expect(throws: LongLinkError.self) { try await world.client.connect() }
      try folder.write("roots.pem", Certificates.authority.certificate)
      try await world.simulation?.sleep(for: .seconds(120))
      return try await world.client.request(World.echo, [1])
    }
    #expect(answer == [1])
  }

  @Test func `a file that cannot be used at first is named`() throws {
    let folder = try Folder()
    let files = try folder.write("server", Certificates.server)
    for (chain, key, field) in [
      ("/nowhere", files.key, "chain"), (files.chain, "/nowhere", "key"),
      (files.key, files.key, "chain"), (files.chain, files.chain, "key"),
      (folder.path, files.key, "chain"),
    ] {
      let error = #expect(throws: LongLinkError.self) {
        try ServerSecurity.tls(TLSServerConfiguration(chainFile: chain, keyFile: key))
      }
      #expect(error?.field == "security.certificates[0].\(field)")
      #expect(error?.detail.contains(field == "key" ? key : chain) == true)
    }
  }
}
