// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLink
import LongLinkCore
import LongLinkDemoMessages
import LongLinkDriver
import LongLinkTestSupport
import LongLinkUploadMessages
import Testing

/// What a hostile client can make `longlink serve --uploads` hold, compute, write and log.
///
/// As in `AttackTests`, an honest client is beside each of them. Slow appends are tested in virtual
/// time.
@Suite(.serialized, .timeLimit(.minutes(15)), .unless(AttackedServer.problem))
struct UploadAttackTests {
  /// A directory that is removed with this object; in memory, where that is possible.
  private final class Directory: Sendable {
    let path: String

    init() {
      let memory = "/dev/shm/"
      let isWritable = FileManager.default.isWritableFile(atPath: memory)
      path = (isWritable ? memory : NSTemporaryDirectory()) + "longlink-\(UUID().uuidString)"
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    var unfinished: Int {
      let names = try? FileManager.default.contentsOfDirectory(atPath: path + "/.unfinished")
      return (names ?? []).count { $0.count == 32 }
    }
  }

  /// A name that would forge a line of the log.
  private static let name =
    "a\n2026-01-01T00:00:00+0000 critical longlink.server: FORGED\n\u{1B}[2J"

  private static func attacker(of server: AttackedServer, from host: UInt8 = 1) throws -> Attacker {
    let attacker = try Attacker(port: server.port, hello: [0x08, 1, 0x10, 7], from: host)
    attacker.drain()
    return attacker
  }

  private static func request(
    _ type: MessageType, _ serial: UInt32, _ body: some BodyEncodable
  ) throws -> [UInt8] {
    Attacker.frame(.request, tag: type.rawValue, serial: serial, try body.encodedBytes())
  }

  /// A request that opens an append.
  private static func append(
    _ serial: UInt32, to id: String, at offset: UInt64 = 0
  ) throws -> [UInt8] {
    let message = AppendRequest(id: id, generation: 1, offset: offset)
    return Attacker.frame(
      .request, flags: .metadata, tag: 14, serial: serial,
      [0, 2, 0x38, 1] + (try message.encodedBytes()))
  }

  private static func client(of server: AttackedServer) throws -> LongLinkClient {
    try LongLinkClient(to: .host("127.0.0.1", port: try #require(UInt16(server.port))))
  }

  /// Makes uploads of one file each.
  private static func create(_ count: Int, of client: LongLinkClient) async throws -> [String] {
    var ids: [String] = []
    for _ in 0..<count {
      let create = CreateRequest(parts: [Part(field: "f", fileName: Self.name)])
      ids.append(try await client.request(UploadMethods.create, create).id)
    }
    return ids
  }

  // MARK: Creates

  @Test func `creates without end make 16 uploads of an address`() async throws {
    let directory = Directory()
    let server = try await AttackedServer("--uploads", directory.path)
    let attacker = try Self.attacker(of: server)
    let part = Part(field: Self.name, fileName: Self.name, size: 1)
    let create = CreateRequest(parts: [Part](repeating: part, count: 50))
    for serial: UInt32 in 50..<20_050 {
      guard attacker.send(try Self.request(12, serial, create)) else { break }
    }
    #expect(await attacker.hasBeenHeard())
    #expect(try await server.settle().requestsReceived >= 10_000)
    #expect(directory.unfinished == 16)
    try await server.judge()
  }

  @Test func `creates of many addresses make 1,024 uploads in all`() async throws {
    let directory = Directory()
    let server = try await AttackedServer("--uploads", directory.path)
    let create = CreateRequest(parts: [Part(field: "f", fileName: Self.name)])
    let attackers = try (2...81).map { try Self.attacker(of: server, from: $0) }
    for attacker in attackers {
      attacker.send(try (50..<70).flatMap { try Self.request(12, $0, create) })
    }
    for attacker in attackers { #expect(await attacker.hasBeenHeard()) }
    // The pong comes before the answers: they wait for the disk.
    while directory.unfinished < 1_024 { try await server.settle() }
    try await server.settle()
    #expect(directory.unfinished == 1_024)
    try await server.judge()
  }

  @Test(arguments: [120_000, 2_000_000])
  func `creates with parts without number cost little more than their bytes`(
    count: Int
  ) async throws {
    let directory = Directory()
    let server = try await AttackedServer("--uploads", directory.path)
    let attackers = try (0..<4).map { _ in try Self.attacker(of: server) }
    // Each part has two bytes here, and would have a hundred once decoded.
    let parts = [[UInt8]](repeating: [0x0A, 0], count: count).flatMap { $0 }
    for attacker in attackers {
      for serial: UInt32 in 50..<55 {
        guard attacker.send(Attacker.frame(.request, tag: 12, serial: serial, parts)) else { break }
      }
    }
    for attacker in attackers { #expect(await attacker.hasBeenHeard()) }
    try await server.settle()
    #expect(directory.unfinished == 0)
    try await server.judge()
  }

  // MARK: Appends

  @Test func `appends that hold their places leave others theirs`() async throws {
    let directory = Directory()
    let server = try await AttackedServer("--uploads", directory.path)
    let client = try Self.client(of: server)
    let ids = try await Self.create(12, of: client)
    let attackers = try (0..<4).map { _ in try Self.attacker(of: server, from: 2) }
    for attacker in attackers {
      var serial: UInt32 = 50
      for _ in 0..<20 {
        for id in ids {
          attacker.send(try Self.append(serial, to: id))
          attacker.send(Attacker.frame(.item, serial: serial, [1]))
          serial += 1
        }
      }
      #expect(await attacker.hasBeenHeard())
    }
    try await server.settle()
    // The other address has places of its own.
    let file = directory.path + ".file"
    try Data(count: 1_000_000).write(to: URL(fileURLWithPath: file))
    defer { try? FileManager.default.removeItem(atPath: file) }
    let upload = try await Tool(["upload", file, "--port", server.port]).finish()
    #expect(upload.code == 0, "\(upload.errors)")
    await client.close()
    try await server.judge()
  }

  @Test func `items larger than an append are bounded`() async throws {
    let directory = Directory()
    let server = try await AttackedServer("--uploads", directory.path)
    let client = try Self.client(of: server)
    let ids = try await Self.create(4, of: client)
    let outcomes = await withTaskGroup(of: ResponseCode?.self) { group in
      for id in ids {
        group.addTask {
          do {
            let request = AppendRequest(id: id, generation: 1, offset: 0)
            _ = try await client.sendItems(UploadMethods.append, request) { writer in
              while true { try await writer.write([UInt8](repeating: 7, count: 12 << 20)) }
            }
            return nil
          } catch {
            return (error as? LongLinkError)?.response
          }
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    // 429 for those with which more than 64 MiB would wait to be written.
    #expect(outcomes.allSatisfy { $0 == 413 || $0 == 429 }, "\(outcomes)")
    for id in ids {
      let status = try await client.request(UploadMethods.status, StatusRequest(id: id))
      #expect(status.offset == 8 << 20 || status.offset == 0)
    }
    await client.close()
    try await server.judge()
  }

  // MARK: Loops

  @Test func `requests that fail cost little, however many come`() async throws {
    let directory = Directory()
    let server = try await AttackedServer("--uploads", directory.path)
    let client = try Self.client(of: server)
    let ids = try await Self.create(4, of: client)
    let attacker = try Self.attacker(of: server)
    let hash = [UInt8](repeating: 0, count: 32)
    let wrong = FinishRequest(id: ids[1], generation: 1, size: 5, sha256: hash)
    var serial: UInt32 = 50
    for _ in 0..<4_000 {
      let requests = try [
        Self.append(serial, to: ids[0], at: 99), Self.append(serial + 1, to: ids[0], at: .max),
        Self.append(serial + 2, to: Self.name), Self.request(15, serial + 3, wrong),
        Self.request(13, serial + 4, StatusRequest(id: ids[2], takesOver: serial % 64 == 50)),
        Self.request(13, serial + 5, StatusRequest(id: Self.name)),
        Self.request(16, serial + 6, AbortRequest(id: Self.name)),
        Self.request(16, serial + 7, AbortRequest(id: ids[3])),
      ]
      guard attacker.send(requests.flatMap { $0 }) else { break }
      serial += 8
    }
    #expect(await attacker.hasBeenHeard())
    #expect(try await server.settle().requestsReceived >= 10_000)
    #expect(directory.unfinished == 3)
    await client.close()
    try await server.judge(growth: 100)
  }

  @Test func `uploads that are made and fail in a loop leave nothing`() async throws {
    let directory = Directory()
    let server = try await AttackedServer("--uploads", directory.path)
    let client = try Self.client(of: server)
    await withTaskGroup(of: Void.self) { group in
      for worker in 0..<8 {
        group.addTask {
          for _ in 0..<100 {
            guard let id = try? await Self.create(1, of: client).first else { continue }
            if worker % 2 == 0 {
              _ = try? await client.request(UploadMethods.abort, AbortRequest(id: id))
            } else {
              let finish = FinishRequest(
                id: id, generation: 1, size: 0, sha256: [UInt8](repeating: 1, count: 32))
              _ = try? await client.request(UploadMethods.finish, finish)
            }
          }
        }
      }
    }
    #expect(directory.unfinished == 0)
    await client.close()
    try await server.judge(growth: 60)
  }
}
