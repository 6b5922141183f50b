// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCore
import LongLinkDemoMessages
import LongLinkTestSupport
import Testing

/// What a hostile client can make `longlink serve` hold, compute and log with streams.
///
/// As in `AttackTests`, an honest client is beside each of them.
@Suite(.serialized, .timeLimit(.minutes(15)), .unless(AttackedServer.problem))
struct StreamAttackTests {
  private static let (count, sum, relay): (UInt32, UInt32, UInt32) = (6, 7, 8)

  private static func attacker(of server: AttackedServer, drains: Bool = true) throws -> Attacker {
    let attacker = try Attacker(port: server.port, hello: [0x08, 1, 0x10, 7])
    if drains { attacker.drain() }
    return attacker
  }

  /// A request that opens a stream: it asks for items if there is credit, or announces some.
  private static func open(
    _ type: UInt32, _ serial: UInt32, credit: Int? = nil, sends: Bool = false, _ body: [UInt8] = []
  ) -> [UInt8] {
    var block = credit.map { [0x30] + Attacker.varint($0) } ?? []
    if sends { block += [0x38, 1] }
    return Attacker.frame(
      .request, flags: .metadata, tag: type, serial: serial, [0, UInt8(block.count)] + block + body)
  }

  /// Asks for so many items of a size.
  private static func ticks(_ count: Int, size: Int = 0) -> [UInt8] {
    [0x08] + Attacker.varint(count) + [0x18] + Attacker.varint(size)
  }

  /// What fills the first window of a stream.
  enum Filling: CaseIterable {
    case large
    case small
    case smallInFragments

    func items(of serial: UInt32) -> [UInt8] {
      switch self {
      case .large:
        let item = Attacker.frame(.item, serial: serial, [UInt8](repeating: 7, count: 32_000))
        return item + item
      case .small:
        return [[UInt8]](repeating: Attacker.frame(.item, serial: serial), count: 4_096)
          .flatMap { $0 }
      case .smallInFragments:
        let item =
          Attacker.frame(.item, flags: .more, serial: serial, [7])
          + Attacker.frame(.item, serial: serial)
        return [[UInt8]](repeating: item, count: 65_536 / 33).flatMap { $0 }
      }
    }
  }

  @Test(arguments: Filling.allCases)
  func `items that nobody takes are bounded`(_ filling: Filling) async throws {
    let server = try await AttackedServer()
    let attackers = try (0..<5).map { _ in try Self.attacker(of: server) }
    await withTaskGroup(of: Void.self) { group in
      for attacker in attackers {
        group.addTask {
          await onThread {
            // A relay that may send nothing takes nothing.
            for serial: UInt32 in 50..<306 {
              attacker.send(Self.open(Self.relay, serial, credit: 0, sends: true))
            }
            for serial: UInt32 in 50..<306 {
              guard attacker.send(filling.items(of: serial)) else { return }
            }
          }
        }
      }
    }
    // Where the machine is slow, heartbeats that no attacker answers end it earlier.
    #expect(attackers.reduce(0) { $0 + $1.sent } >= 24_000_000, "bytes")
    try await server.settle()
    try await server.judge()
  }

  @Test func `streams that are cancelled at once cost nothing afterwards`() async throws {
    let server = try await AttackedServer()
    // Each connection sends fewer cancels than would end it.
    for _ in 0..<6 {
      let attacker = try Self.attacker(of: server)
      var serial: UInt32 = 50
      for _ in 0..<9 {
        var bytes: [UInt8] = []
        for _ in 0..<1_000 {
          bytes += Self.open(Self.relay, serial, credit: 65_536, sends: true)
          bytes += Attacker.frame(.item, serial: serial, [1, 2, 3])
          bytes += Attacker.frame(.cancel, serial: serial)
          serial += 1
        }
        attacker.send(bytes)
      }
      #expect(await attacker.hasBeenHeard())
    }
    #expect(try await server.settle().requestsReceived >= 50_000)
    try await server.judge(growth: 60)
  }

  @Test func `credit of a byte at a time sends no fragment for each`() async throws {
    let server = try await AttackedServer()
    let attacker = try Self.attacker(of: server)
    let serials: Range<UInt32> = 50..<1_050
    for serial in serials {
      attacker.send(Self.open(Self.count, serial, credit: 0, Self.ticks(1_000, size: 20_000)))
    }
    let credits = serials.flatMap { Attacker.frame(.credit, serial: $0, [0, 0, 0, 1]) }
    for _ in 0..<200 { attacker.send(credits) }
    #expect(await attacker.hasBeenHeard())
    #expect(try await server.settle().requestsReceived >= 1_000)
    try await server.judge(growth: 100)
  }

  @Test(arguments: [0, 1_000_000], [false, true])
  func `endless items do not take the server from others`(
    _ size: Int, _ drains: Bool
  ) async throws {
    let server = try await AttackedServer()
    let attackers = try (0..<4).map { _ in try Self.attacker(of: server, drains: drains) }
    for attacker in attackers {
      for serial: UInt32 in 50..<1_050 {
        let asked = Self.ticks(4_000_000_000, size: size)
        attacker.send(Self.open(Self.count, serial, credit: 2_147_483_647, asked))
      }
    }
    // On a busy machine, the server may take one for a client that does not read, and end it.
    var areHeard = drains
    if drains {
      for attacker in attackers where await !attacker.hasBeenHeard() { areHeard = false }
    }
    // Others are answered while items go on. Of a client that does not read, no more is read.
    for _ in 0..<5 { try await server.settle() }
    #expect(try await server.settle().requestsReceived >= (areHeard ? 4_000 : 100))
    try await server.judge()
  }

  @Test func `items, ends and credit without a stream are dropped`() async throws {
    let server = try await AttackedServer()
    let attacker = try Self.attacker(of: server)
    let late =
      Attacker.frame(.item, serial: 900, [1]) + Attacker.frame(.end, serial: 901)
      + Attacker.frame(.credit, serial: 902, [0, 0, 0, 1])
      + Attacker.frame(.item, flags: .more, serial: 903, [1])
    let many = [[UInt8]](repeating: late, count: 1_000).flatMap { $0 }
    for _ in 0..<100 { attacker.send(many) }
    #expect(await attacker.hasBeenHeard())
    try await server.settle()
    try await server.judge(growth: 30)
  }

  @Test func `fragments of a byte in many items at once are bounded`() async throws {
    let server = try await AttackedServer()
    let attacker = try Self.attacker(of: server)
    let serials: Range<UInt32> = 50..<306
    for serial in serials { attacker.send(Self.open(Self.sum, serial, sends: true)) }
    let fragments = serials.flatMap { Attacker.frame(.item, flags: .more, serial: $0, [1]) }
    // Within the first credit of each.
    for _ in 0..<3_800 { attacker.send(fragments) }
    #expect(await attacker.hasBeenHeard())
    try await server.settle()
    try await server.judge(growth: 60)
  }
}
