// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLink
import LongLinkCore
import LongLinkServer
import LongLinkTesting
import Testing

/// Identities that outlive a process, and what of them is seen.
@Suite struct ClientIdentityFileTests {
  /// Runs a body with the path of a file that does not exist, in a folder of its own.
  private static func withFile(_ body: (String) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory
      .appending(path: "longlink-identity-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await body(folder.appending(path: "client").path)
    let left = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    #expect(left.allSatisfy { $0 == "client" }, "\(left)")
  }

  /// What a client with this configuration says in its hello.
  private static func hellos(
    _ identities: ClientIdentity?...
  ) async throws -> [[UInt8]] {
    let said = Tally<[UInt8]>()
    try await Stage.simulate { stage, _ in
      let server = try await SimulatedServer.start(
        on: stage.serverLoop, at: .ipv4(10, 0, 0, 1, port: 80))
      for identity in identities {
        let client = try stage.client(to: [.host("10.0.0.1", port: 80)]) {
          if let identity { $0.identity.client = identity }
        }
        try await client.connect()
        client.pathChanged()
        try await stage.until { await client.counters().connects == 2 }
        await client.close()
      }
      for frame in server.record.frames(of: .hello) {
        said.add(frame.helloFields?.clientID ?? [])
      }
      await server.stop()
    }
    return said.elements
  }

  @Test func `a client says the same 16 bytes on each connection, and another client others`()
    async throws
  {
    let said = try await Self.hellos(nil, nil)
    #expect(said.count == 4 && said.allSatisfy { $0.count == 16 })
    #expect(said[0] == said[1] && said[2] == said[3] && said[0] != said[2])
  }

  @Test func `a file keeps the identity, for its owner alone`() async throws {
    try await Self.withFile { path in
      let first = try ClientIdentity.file(path)
      let attributes = try FileManager.default.attributesOfItem(atPath: path)
      #expect(attributes[.posixPermissions] as? Int == 0o600)
      let bytes = try [UInt8](Data(contentsOf: URL(fileURLWithPath: path)))
      #expect(bytes.count == 16)
      let second = try ClientIdentity.file(path)
      let said = try await Self.hellos(first, second, ClientIdentity(bytes: bytes))
      #expect(said == Array(repeating: bytes, count: 6))
    }
  }

  @Test func `those that make the file at once get one identity`() async throws {
    try await Self.withFile { path in
      let made = try await withThrowingTaskGroup(of: ClientIdentity.self) { group in
        for _ in 0..<8 { group.addTask { try ClientIdentity.file(path) } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      let bytes = try [UInt8](Data(contentsOf: URL(fileURLWithPath: path)))
      for identity in made { #expect(try await Self.hellos(identity)[0] == bytes) }
    }
  }

  @Test func `what is no identity, or is open to others, is refused and stays as it is`()
    async throws
  {
    try await Self.withFile { path in
      for (content, mode, text) in [
        ([UInt8](repeating: 1, count: 15), 0o600, "16 bytes"),
        ([UInt8](repeating: 1, count: 17), 0o600, "16 bytes"), ([], 0o600, "16 bytes"),
        ([UInt8](repeating: 1, count: 16), 0o640, "others may read"),
        ([UInt8](repeating: 1, count: 16), 0o602, "others may read"),
      ] {
        #expect(FileManager.default.createFile(atPath: path, contents: Data(content)))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        let error = #expect(throws: LongLinkError.self) { try ClientIdentity.file(path) }
        #expect(error?.code == .invalidConfiguration)
        #expect(error?.detail.contains(text) == true && error?.detail.contains(path) == true)
        #expect(try [UInt8](Data(contentsOf: URL(fileURLWithPath: path))) == content)
        try FileManager.default.removeItem(atPath: path)
      }
    }
    let error = #expect(throws: LongLinkError.self) { try ClientIdentity.file("/nowhere/file") }
    #expect(error?.code == .invalidConfiguration)
    #expect(throws: LongLinkError.self) { try ClientIdentity(bytes: [1, 2, 3]) }
  }

  @Test func `no description and no dump shows an identity`() throws {
    let identity = try ClientIdentity(bytes: [UInt8](repeating: 0xA7, count: 16))
    var text = "\(identity)"
    dump(identity, to: &text)
    var configuration = ClientConfiguration(servers: [Endpoint]())
    configuration.identity.client = identity
    text += "\(configuration)"
    dump(configuration, to: &text)
    dump(Hello(clientID: ClientID([UInt8](repeating: 0xA7, count: 16))), to: &text)
    #expect(
      !text.contains("167, 167") && !text.contains("- 167\n")
        && !text.lowercased().contains("a7a7"), "\(text)")
    #expect(!text.contains("\(UInt64(0xA7A7_A7A7_A7A7_A7A7))"), "\(text)")
  }
}
