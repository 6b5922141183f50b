// SPDX-License-Identifier: Apache-2.0

import LongLinkCertificates
import LongLinkCore
import LongLinkDriver
import LongLinkTLS
@_spi(Loop) import LongLinkTransport

/// Two streams of TLS over memory, between which the input damages, cuts and invents bytes.
///
/// Whatever happens, what a side reads is the beginning of what the other one has written, an end
/// in good order comes behind all of it, and nothing is held without bound.
enum TLSFuzz {
  /// The role that the damage is for.
  static func run(_ role: Role, _ bytes: [UInt8]) throws {
    guard !bytes.isEmpty else { return }
    let world = TLSFuzzWorld.shared
    let pair = try world.run { loop in
      LoopBound(try TLSFuzzPair(attacked: role, FuzzInput(bytes), on: loop), on: loop)
    }
    // Each step is work of its own, since streams write at the ends of turns.
    defer { try? world.run { _ in pair.value.end() } }
    while try world.run({ _ in try pair.value.act() }) {}
    for _ in 0..<8 { try world.run { _ in try pair.value.settle() } }
    try world.run { _ in try pair.value.judge() }
  }

  /// The commands that a conversation is made of, and records that may not come.
  static var seeds: [[UInt8]] {
    let flow: [UInt8] = [0, 0, 0, 0, 0, 0]
    let records: [[UInt8]] = [
      [0x16, 3, 1, 0, 4, 1, 0, 0x60, 1], [0x16, 3, 3, 0, 0], [0x15, 3, 3, 0, 2, 2, 40],
      [0x14, 3, 3, 0, 1, 1], [0x17, 3, 3, 0x48, 1], [0x17, 3, 3, 0, 1, 0], Array("GET /".utf8),
      [0x16, 3, 1, 0, 1, 1], [0x16, 3, 1, 0, 3, 0, 0x50, 0],
    ]
    let invented = records.map { [7, UInt8($0.count)] + $0 + flow }
    return invented + invented.map { flow + $0 } + [
      flow + [3, 200, 4, 99, 0, 0, 10, 0], flow + [3, 255, 1, 9, 0, 1, 200, 0, 0],
      flow + [3, 60, 6, 3, 0, 5, 2, 0, 0], flow + [8, 40, 3, 250, 0, 8, 255, 0, 0, 11, 0, 0],
      flow + (0..<20).flatMap { [3, UInt8($0), 0] } + [9, 12, 3, 7, 0, 0],
    ]
  }
}

/// One loop, certificate and client for all inputs.
final class TLSFuzzWorld: Sendable {
  static let shared = TLSFuzzWorld()
  let loop: EventLoop
  let server: ServerSecurity
  let client: ClientSecurity

  private init() {
    let files = CertificateFiles(
      serverNames: ["DNS:fuzz.test"], serial: 1, validity: 0..<4_000_000_000)
    let identity = TLSIdentity(
      chain: .bytes(files.server.certificate), key: .bytes(files.server.key))
    var configuration = TLSClientConfiguration()
    configuration.roots = .only(.bytes(files.authority.certificate))
    do {
      server = try .tls(TLSServerConfiguration(certificates: [identity]))
      client = try .tls(configuration)
      loop = try EventLoop(name: "fuzz")
    } catch {
      fatalError("TLS cannot be set up: \(error)")
    }
  }

  /// Runs a body on the loop, and waits for the end of the turn.
  func run<Value: Sendable>(
    _ body: @escaping @Sendable (EventLoop) throws -> Value
  ) throws -> Value {
    let outcome = FuzzOutcome<Value>()
    loop.execute { [loop] in
      outcome.set(Result { try body(loop) })
      // Behind the streams, which were told of this turn before.
      loop.atEndOfTurn(outcome, token: 0)
    }
    return try outcome.wait()
  }
}
