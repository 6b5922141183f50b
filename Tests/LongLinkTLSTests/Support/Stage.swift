// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkTesting

@testable import LongLinkTLS
@_spi(Loop) @testable import LongLinkTransport

/// A server's stream whose peer is a raw client, on a loop of a simulation.
final class Stage: TransportHandler {
  let loop: EventLoop
  let below = MemoryTransport()
  let client: RawTLS
  let stream: any Transport
  private(set) var readiness: [Readiness] = []
  /// What was read, and how it ended.
  private(set) var bytes: [UInt8] = []
  private(set) var ending: String?
  /// Whether it reads once whenever it is told that it can, as a link does.
  var readsWhenReady = false

  convenience init(
    on loop: EventLoop, _ server: TLSServerConfiguration = .with(), client: RawTLS = RawTLS()
  ) throws {
    self.init(on: loop, try TLSServer(server), client: client)
  }

  init(on loop: EventLoop, _ server: TLSServer, client: RawTLS) {
    self.loop = loop
    self.client = client
    stream = server.secure(below, on: loop)
    stream.attach(self, token: 3)
    stream.setInterest(.read)
  }

  func transportReady(_ readiness: Readiness, token: UInt64) {
    self.readiness.append(readiness)
    if readsWhenReady, readiness.contains(.read) { readPiece(4_096) }
  }

  /// Runs a body on a loop of a simulation.
  static func run<Value: Sendable>(
    _ body: @escaping @Sendable (EventLoop) throws -> Value
  ) async throws -> Value {
    let simulation = Simulation()
    return try await simulation.run {
      let loop = simulation.eventLoop(named: "stage")
      let result = await loop.run { Result { try body(loop) } }
      // What closed streams wait for is over.
      try await simulation.sleep(for: .seconds(10))
      return try result.get()
    }
  }

  /// Lets the ends of turns come that were asked for.
  func endTurn() {
    (stream as? TLSTransport)?.turnEnds()
  }

  /// Moves bytes both ways until the handshake is over, or neither side has any.
  @discardableResult
  func shakeHands() -> Bool {
    for _ in 0..<8 {
      if client.handshake(), stream.layer?.security != nil { break }
      send(client.takeOutput())
      client.receive(below.takeOutput())
    }
    return stream.layer?.security != nil
  }

  /// Bytes come from the client.
  func send(_ bytes: [UInt8]) {
    below.inbox += bytes
    below.deliver()
    endTurn()
  }

  /// Reads until there is nothing, the end or a failure; an end below comes with a read of its own.
  func readAll(pieces: Int = 4_096) {
    read(pieces)
    if below.hasEnded { read(pieces) }
  }

  private func read(_ pieces: Int) {
    while readPiece(pieces) {}
  }

  /// Reads once, and notes the end or the failure; returns whether there were bytes.
  @discardableResult
  private func readPiece(_ size: Int) -> Bool {
    guard ending == nil else { return false }
    var queue = ByteQueue()
    do throws(SocketError) {
      let outcome = try queue.append(capacity: size) { (span) throws(SocketError) in
        try stream.read(into: &span)
      }
      switch outcome {
      case .bytes:
        bytes += queue.takeAll()
        return true
      case .wouldBlock: break
      case .end: ending = stream.layer?.isCutOff == true ? "cut off" : "end"
      }
    } catch {
      ending = stream.layer?.securityFailure.map { "\($0.code)" } ?? "\(error)"
    }
    return false
  }

  /// Reads once.
  func readOnce(_ count: Int) throws {
    var queue = ByteQueue()
    let outcome = try queue.append(capacity: count) { (span) throws(SocketError) in
      try stream.read(into: &span)
    }
    if case .bytes = outcome { bytes += queue.takeAll() }
  }

  func write(_ bytes: [UInt8]) throws -> Int {
    try unsafe bytes.withUnsafeBytes { try unsafe stream.write(RawSpan(_unsafeBytes: $0)) }
  }
}

/// What became of a stream below, for tests that leave its loop.
struct LoopBox: Sendable {
  private let below: LoopBound<MemoryTransport>
  private let stream: LoopBound<Weak>

  private final class Weak {
    weak var stream: (any Transport)?
  }

  init(_ below: MemoryTransport, _ stream: any Transport, on loop: EventLoop) {
    self.below = LoopBound(below, on: loop)
    let weak = Weak()
    weak.stream = stream
    self.stream = LoopBound(weak, on: loop)
  }

  var closings: [String] {
    get async { await below.loop.run { below.value.closings } }
  }

  var isReleased: Bool {
    get async { await stream.loop.run { stream.value.stream == nil } }
  }
}
