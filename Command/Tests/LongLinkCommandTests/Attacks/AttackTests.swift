// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCore
import LongLinkDemoMessages
import LongLinkTestSupport
import Testing

/// What a hostile client can make `longlink serve` hold, compute and log, with its defaults.
///
/// Each test attacks a server process of its own, with an honest client beside. `make attacks` runs
/// them with a release build, and then no honest request may take two seconds.
@Suite(.serialized, .timeLimit(.minutes(15)), .unless(AttackedServer.problem))
struct AttackTests {
  @Test func `rapid resets start no more handlers than allowed, and end their connection`()
    async throws
  {
    let server = try await AttackedServer()
    for _ in 0..<10 {
      let attacker = try Attacker(port: server.port)
      attacker.drain()
      var serial: UInt32 = 50
      for _ in 0..<50 {
        var bytes: [UInt8] = []
        for _ in 0..<1_000 {
          bytes += Attacker.sleep(serial) + Attacker.frame(.cancel, serial: serial)
          serial += 1
        }
        guard attacker.send(bytes) else { break }
      }
      #expect(await !attacker.hasBeenHeard())
    }
    #expect(try await server.settle().requestsReceived >= 100_000)
    try await server.judge(growth: 60)
  }

  @Test func `5000 connections that never open keep no client away`() async throws {
    let server = try await AttackedServer()
    var half: [Int32] = []
    defer { for descriptor in half { close(descriptor) } }
    // The last byte of the largest hello never comes.
    let credential = [0x3A] + Attacker.varint(65_520) + [UInt8](repeating: 7, count: 65_520)
    let unfinished = Attacker.frame(.hello, serial: 3, credential).dropLast()
    let most = Self.mostDescriptors
    for index in 0..<5_000 {
      let connection = try RawClient(port: server.port, from: UInt8(2 + index % 250)).connection
      half.append(connection.descriptor)
      if index.isMultiple(of: 3) { connection.write(Array(unfinished)) }
      if half.count > most { close(half.removeFirst()) }
      if index.isMultiple(of: 500) {
        let honest = try Attacker(port: server.port)
        honest.drain()
        #expect(await honest.hasBeenHeard())
      }
    }
    try await server.settle()
    try await server.judge()
  }

  /// How many connections the tests may keep open beside other descriptors.
  private static var mostDescriptors: Int {
    var limit = rlimit()
    // The system fills the structure in during the call.
    guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
      return 200
    }
    return max(200, min(4_000, Int(clamping: limit.rlim_cur) - 500))
  }

  @Test func `handlers of connections that come and go are bounded together`() async throws {
    let server = try await AttackedServer()
    let requests = (50..<1_074).flatMap { Attacker.sleep($0, padding: 1_000) }
    for _ in 0..<30 {
      let attacker = try Attacker(port: server.port)
      attacker.drain()
      attacker.send(requests)
      #expect(await attacker.hasBeenHeard())
    }
    #expect(try await server.settle().requestsReceived >= 30_720)
    try await server.judge()
  }

  @Test func `deadlines of a millisecond start no more handlers than allowed`() async throws {
    let server = try await AttackedServer()
    let attacker = try Attacker(port: server.port)
    attacker.drain()
    let body: [UInt8] = [0, 2, 0x08, 1, 0x08, 0xC0, 0xCF, 0x24]
    for round: UInt32 in 0..<50 {
      attacker.send(
        (0..<1_000).flatMap {
          Attacker.frame(.request, flags: .metadata, tag: 2, serial: 50 + round * 1_000 + $0, body)
        })
    }
    #expect(await attacker.hasBeenHeard())
    #expect(try await server.settle().requestsReceived >= 50_000)
    try await server.judge(growth: 60)
  }

  @Test(arguments: [
    (1, 40, 16_000_000), (6, 6, 16_000_000), (20, 10, 4_000_000), (40, 40, 500_000),
  ])
  func `bodies of running requests are bounded`(
    _ connections: Int, _ requests: Int, _ size: Int
  ) async throws {
    let server = try await AttackedServer()
    let attackers = try (0..<connections).map { _ in try Attacker(port: server.port) }
    let bodies = (0..<requests).map { Attacker.sleep(UInt32(50 + $0), padding: size) }
    await Self.atOnce(attackers) { attacker in
      attacker.drain()
      for body in bodies where !attacker.send(body) { return }
    }
    let sent = attackers.reduce(0) { $0 + $1.sent }
    #expect(sent >= 160_000_000, "bytes")
    try await server.settle()
    try await server.judge()
  }

  @Test func `messages in fragments are bounded`() async throws {
    let server = try await AttackedServer()
    let attackers = try (0..<8).map { _ in try Attacker(port: server.port) }
    let piece = [UInt8](repeating: 7, count: 65_536)
    await Self.atOnce(attackers) { attacker in
      attacker.drain()
      for serial: UInt32 in 50..<1_000 {
        guard
          attacker.send(Attacker.frame(.request, flags: .more, tag: 1, serial: serial, piece))
        else { return }
      }
    }
    let sent = attackers.reduce(0) { $0 + $1.sent }
    #expect(sent >= 160_000_000, "bytes")
    try await server.settle()
    try await server.judge()
  }

  @Test func `answers that are not read are bounded`() async throws {
    let server = try await AttackedServer()
    let attackers = try (0..<12).map { _ in try Attacker(port: server.port) }
    let body = [UInt8](repeating: 7, count: 4_000_000)
    await Self.atOnce(attackers) { attacker in
      for serial: UInt32 in 50..<70 {
        guard attacker.send(Attacker.frame(.request, tag: 1, serial: serial, body)) else { return }
      }
    }
    let sent = attackers.reduce(0) { $0 + $1.sent }
    #expect(sent >= 64_000_000, "bytes")
    try await server.settle()
    try await server.judge()
  }

  @Test func `memory of large messages is given back while a small request runs`() async throws {
    let server = try await AttackedServer()
    let attackers = try (0..<10).map { _ in try Attacker(port: server.port) }
    let large = [UInt8](repeating: 7, count: 16_000_000)
    let piece = [UInt8](repeating: 7, count: 65_536)
    for attacker in attackers {
      attacker.drain()
      attacker.send(Attacker.sleep(50))
      attacker.send(Attacker.frame(.request, tag: 99, serial: 51, large))
      for _ in 0..<240 {
        attacker.send(Attacker.frame(.request, flags: .more, tag: 99, serial: 52, piece))
      }
      attacker.send(Attacker.frame(.request, tag: 99, serial: 52, piece))
    }
    for attacker in attackers { #expect(await attacker.hasBeenHeard()) }
    #expect(try await server.settle().requestsReceived >= 30)
    // Whatever the C library keeps of what was freed.
    #expect(try server.growth < 90)
    try await server.judge()
  }

  @Test func `repeated goaways neither flood the log nor forge a line`() async throws {
    let server = try await AttackedServer()
    let attacker = try Attacker(port: server.port)
    attacker.drain()
    attacker.send(Attacker.sleep(50))
    let reason = Array("bye\n2026-01-01T00:00:00+0000 critical longlink.server: FORGED\n".utf8)
    let text = reason + [UInt8](repeating: 0x7A, count: 60_000)
    let goaway = Attacker.frame(.goaway, serial: 4, [0x12] + Attacker.varint(text.count) + text)
    for _ in 0..<2_000 { attacker.send(goaway) }
    #expect(await attacker.hasBeenHeard())
    try await server.settle()
    try await server.judge()
  }

  @Test func `responses above the peer's limit do not flood the log`() async throws {
    let server = try await AttackedServer()
    let attacker = try Attacker(port: server.port, hello: [0x08, 1, 0x10, 3, 0x18, 1])
    attacker.drain()
    for round: UInt32 in 0..<50 {
      attacker.send(
        (0..<1_000).flatMap {
          Attacker.frame(.request, tag: 1, serial: 50 + round * 1_000 + $0, [1, 2])
        })
    }
    #expect(await attacker.hasBeenHeard())
    #expect(try await server.settle().requestsReceived >= 50_000)
    try await server.judge()
  }

  @Test func `metadata costs little more than a payload of its size`() async throws {
    let server = try await AttackedServer()
    let attacker = try Attacker(port: server.port)
    attacker.drain()
    // Two blocks by turns: none repeats the one before.
    let blocks = [UInt8(0x30), 0x31].map { last -> [UInt8] in
      var block: [UInt8] = []
      for number in 0..<7_000 {
        let key: [UInt8] = [UInt8(0x30 + number % 64), UInt8(0x30 + number / 64 % 64), last]
        block += [0x22, 7, 0x0A, 3] + key + [0x12, 0]
      }
      return block
    }
    func time(_ frames: [[UInt8]]) async throws -> Double {
      let before = try server.processorTime
      for _ in 0..<200 { for frame in frames { attacker.send(frame) } }
      #expect(await attacker.hasBeenHeard())
      return try server.processorTime - before
    }
    let plain = try await time(
      blocks.map { Attacker.frame(.request, tag: 99, serial: 50, $0 + [0, 0]) })
    let loaded = try await time(
      blocks.map { block -> [UInt8] in
        let count: [UInt8] = [UInt8(block.count >> 8), UInt8(block.count & 0xFF)]
        return Attacker.frame(.request, flags: .metadata, tag: 99, serial: 50, count + block)
      })
    print("attack: metadata cost \(loaded) s, payload \(plain) s")
    // The honest client's own share is in both. A debug build checks each byte slowly.
    #expect(loaded < (AttackedServer.isOptimized ? 15 : 60) * max(plain, 0.05))
    try await server.judge()
  }

  @Test func `serials that would collide cost no more than others`() async throws {
    let server = try await AttackedServer()
    func time(step: UInt32) async throws -> Double {
      var sum = 0.0
      // Each connection sends fewer cancels than would end it.
      for _ in 0..<20 {
        let attacker = try Attacker(port: server.port)
        attacker.drain()
        attacker.send((0..<1_000).flatMap { Attacker.sleep(64 + $0 * step) })
        #expect(await attacker.hasBeenHeard())
        let before = try server.processorTime
        attacker.send(
          (1_000..<10_000).flatMap { Attacker.frame(.cancel, serial: 64 + $0 * step) })
        #expect(await attacker.hasBeenHeard())
        sum += try server.processorTime - before
      }
      return sum
    }
    let ordinary = try await time(step: 1)
    let colliding = try await time(step: 65_536)
    print("attack: colliding serials cost \(colliding) s, others \(ordinary) s")
    #expect(colliding < 5 * max(ordinary, 0.05))
    try await server.judge()
  }

  /// Lets each attacker do its work on a thread of its own.
  private static func atOnce(
    _ attackers: [Attacker], _ work: @escaping @Sendable (Attacker) -> Void
  ) async {
    await withTaskGroup(of: Void.self) { group in
      for attacker in attackers { group.addTask { await onThread { work(attacker) } } }
    }
  }
}

/// What a hostile server can make a client hold.
@Suite(.serialized, .timeLimit(.minutes(15)), .unless(AttackedServer.problem))
struct AttackedClientTests {
  @Test func `unsolicited requests are refused, and not collected`() async throws {
    let piece = [UInt8](repeating: 7, count: 65_536)
    let flooded = DispatchSemaphore(value: 0)
    let peer = try ScriptedPeer { connection in
      connection.greet(agreeing: [0x08, 1, 0x10, 3])
      for _ in 0..<20 {
        for serial: UInt32 in 0..<100 {
          connection.write(
            Attacker.frame(
              .request, flags: .more, tag: 1, serial: Wire.serverBit | Wire.firstSerial + serial,
              piece))
        }
      }
      // Its pong comes once the client has read all of that.
      connection.write(Attacker.frame(.ping, serial: 0))
      while let frame = connection.readFrame(), frame.kind != FrameKind.pong.rawValue {}
      flooded.signal()
      connection.readToEnd()
    }
    let call = try Tool(["call", "1", "--port", peer.port, "--timeout", "600"])
    await onThread { flooded.wait() }
    let peak = try AttackedServer.kibibytes("VmHWM", of: call.id)
    call.send(SIGKILL)
    #expect(peak / 1024 < 150, "MiB")
  }
}
