// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCore
import LongLinkDriver
import LongLinkTransport
import Synchronization

/// The outcome of work on a loop, for a thread that waits.
final class FuzzOutcome<Value: Sendable>: TurnHandler, Sendable {
  private let result = Mutex<Result<Value, any Error>?>(nil)
  private let semaphore = DispatchSemaphore(value: 0)

  func set(_ outcome: Result<Value, any Error>) {
    result.withLock { $0 = outcome }
  }

  func turnEnds(token: UInt64) {
    semaphore.signal()
  }

  func wait() throws -> Value {
    semaphore.wait()
    guard let result = result.withLock({ $0 }) else { throw FuzzFailure("there is no outcome") }
    return try result.get()
  }
}

/// A byte stream whose other end is the fuzzer.
final class FuzzTransport: Transport {
  var inbox: [UInt8] = []
  var hasEnded = false
  var outbox: [UInt8] = []
  /// The bytes that writes may take.
  var room = Int.max
  private(set) var hasShutDown = false
  private(set) var isClosed = false
  private var interest = Readiness.none
  private var handler: (any TransportHandler)?
  private var token: UInt64 = 0

  var localAddress: SocketAddress? { nil }
  var peerAddress: SocketAddress? { .ipv4(10, 0, 0, 9, port: 1) }
  var unacknowledgedBytes: Int { outbox.count }
  var hasUnreadBytes: Bool { !inbox.isEmpty }

  func attach(_ handler: any TransportHandler, token: UInt64) {
    (self.handler, self.token) = (handler, token)
  }

  func setInterest(_ interest: Readiness) { self.interest = interest }
  func finishConnecting() throws(SocketError) -> Bool { true }

  func read(into buffer: inout OutputRawSpan) throws(SocketError) -> ReadOutcome {
    guard !inbox.isEmpty else { return hasEnded ? .end : .wouldBlock }
    let count = min(inbox.count, buffer.freeCapacity)
    for byte in inbox.prefix(count) { buffer.append(byte) }
    inbox.removeFirst(count)
    return .bytes(count)
  }

  func write(_ bytes: RawSpan) throws(SocketError) -> Int {
    let count = min(bytes.byteCount, room)
    room -= count
    unsafe bytes.withUnsafeBytes { unsafe outbox += $0.prefix(count) }
    return count
  }

  func shutDownWriting() { hasShutDown = true }

  func close() {
    isClosed = true
    handler = nil
  }

  func reset() { close() }

  /// Tells the stream above what it waits for, as a loop does in each turn.
  func deliver() {
    var ready = Readiness.none
    if !inbox.isEmpty || hasEnded { ready = ready.union(.read) }
    if room > 0 { ready = ready.union(.write) }
    ready = ready.intersection(interest)
    if ready != .none { handler?.transportReady(ready, token: token) }
  }
}

/// One side: a stream of TLS, what it wrote and what it has read.
final class TLSFuzzSide: TransportHandler {
  let below = FuzzTransport()
  let stream: any Transport
  private(set) var written: [UInt8] = []
  private(set) var read: [UInt8] = []
  private(set) var hasEnded = false
  private(set) var hasFailed = false
  private(set) var isOver = false
  private(set) var hasShutDown = false
  private var isReset = false
  private var acknowledged = 0

  /// Far above one record and one piece of output.
  private static let mostHeld = 262_144

  init(_ wrap: (any Transport) -> any Transport) {
    stream = wrap(below)
    stream.attach(self, token: 1)
    stream.setInterest([.read, .write])
  }

  func transportReady(_ readiness: Readiness, token: UInt64) {
    if readiness.contains(.read) { readAll() }
  }

  private func readAll() {
    guard !isOver else { return }
    while !hasEnded, !hasFailed {
      var queue = ByteQueue()
      do throws(SocketError) {
        let outcome = try queue.append(capacity: 700) { (span) throws(SocketError) in
          try stream.read(into: &span)
        }
        switch outcome {
        case .bytes: read += queue.takeAll()
        case .wouldBlock: return
        case .end: hasEnded = true
        }
      } catch {
        hasFailed = true
      }
    }
  }

  func write(_ count: Int) {
    guard !isOver, !hasShutDown, !hasFailed else { return }
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: written.count + $0) }
    do throws(SocketError) {
      let taken = try unsafe stream.write(bytes.span.bytes)
      written += bytes.prefix(taken)
    } catch {
      hasFailed = true
    }
  }

  /// Whether the peer may be told of an end in good order.
  var hasSentEnd: Bool { hasShutDown || isOver && !isReset }

  func shutDown() {
    guard !isOver, !hasShutDown else { return }
    hasShutDown = true
    stream.shutDownWriting()
  }

  func close(resets: Bool) {
    guard !isOver else { return }
    isOver = true
    isReset = resets
    if resets { stream.reset() } else { stream.close() }
  }

  /// What holds at any time.
  func check(against peer: TLSFuzzSide) throws(FuzzFailure) {
    try expect(
      read.count <= peer.written.count && read.elementsEqual(peer.written.prefix(read.count)),
      "bytes were read that the peer has not written")
    try expect((stream.layer?.heldBytes ?? 0) <= TLSFuzzSide.mostHeld, "the stream holds too much")
    guard !isOver else { return }
    let now = written.count - stream.unacknowledgedBytes
    try expect(now >= acknowledged && now <= written.count, "acknowledged bytes were taken back")
    acknowledged = now
    if hasEnded, stream.layer?.isCutOff == false {
      try expect(
        peer.hasSentEnd && read.count == peer.written.count, "an end came that nobody has sent")
    }
    if hasFailed, stream.layer?.security != nil {
      throw FuzzFailure("a stream that has failed says that it is secured")
    }
  }
}

/// A client and a server, and the bytes between them.
final class TLSFuzzPair {
  private let client: TLSFuzzSide
  private let server: TLSFuzzSide
  private let attacked: TLSFuzzSide
  private let other: TLSFuzzSide

  private var input: FuzzInput
  /// Whether nothing was damaged, cut off or ended early.
  private var isIntact = true

  init(attacked role: Role, _ input: FuzzInput, on loop: EventLoop) throws {
    self.input = input
    client = TLSFuzzSide {
      TLSFuzzWorld.shared.client.provider.secure($0, host: "fuzz.test", on: loop)
    }
    server = TLSFuzzSide { TLSFuzzWorld.shared.server.provider.secure($0, on: loop) }
    (attacked, other) = role == .server ? (server, client) : (client, server)
  }

  /// Does what the next bytes of the input say; false at its end.
  func act() throws(FuzzFailure) -> Bool {
    guard !input.isEmpty else { return false }
    let action = input.byte() % 12
    let isSecured = client.stream.layer?.security != nil && server.stream.layer?.security != nil
    // An end before the handshake is over is a failure of it.
    if [4, 5, 6, 7, 11].contains(action) || !isSecured && [2, 10].contains(action) {
      isIntact = false
    }
    switch action {
    case 0: carry(.max)
    case 1: carry(1 + Int(input.byte()))
    case 2: other.shutDown()
    case 3: other.write(1 + Int(input.byte()))
    case 4: attacked.below.inbox += input.take(1 + Int(input.byte() % 64))
    case 5: attacked.below.hasEnded = true
    case 6: damage()
    case 7: attacked.below.inbox += input.take(Int(input.byte()))
    case 8: attacked.write(Int(input.byte()) * 300)
    case 9: attacked.below.room = Int(input.byte()) * 20
    case 10: attacked.shutDown()
    default:
      if input.byte() & 3 == 0 {
        attacked.close(resets: input.byte() & 1 == 0)
      } else {
        attacked.stream.layer?.releaseStorage()
      }
    }
    turn()
    try check()
    return true
  }

  /// Moves bytes both ways; of those for the attacked side at most so many.
  private func carry(_ count: Int) {
    if !attacked.below.hasEnded {
      attacked.below.inbox += other.below.outbox.prefix(count)
      if other.below.hasShutDown, other.below.outbox.count <= count {
        attacked.below.hasEnded = true
      }
    }
    other.below.outbox.removeFirst(min(count, other.below.outbox.count))
    other.below.inbox += attacked.below.outbox
    attacked.below.outbox = []
    if attacked.below.hasShutDown || attacked.below.isClosed { other.below.hasEnded = true }
  }

  /// Changes a byte of what is on its way.
  private func damage() {
    guard !other.below.outbox.isEmpty else { return }
    other.below.outbox[input.below(other.below.outbox.count)] ^= input.byte() | 1
  }

  private func turn() {
    // Sides read when they are told to, as links do.
    for side in [attacked, other] { side.below.deliver() }
  }

  private func check() throws(FuzzFailure) {
    try client.check(against: server)
    try server.check(against: client)
  }

  /// Lets what is on its way arrive; several times everything has.
  func settle() throws(FuzzFailure) {
    attacked.below.room = .max
    carry(.max)
    turn()
    try check()
  }

  /// Without damage everything has arrived.
  func judge() throws(FuzzFailure) {
    guard isIntact else { return }
    for (side, peer) in [(client, server), (server, client)] {
      try expect(!side.hasFailed, "a side has failed although nothing was damaged")
      try expect(side.read.count == peer.written.count, "bytes have not arrived")
    }
    let isSecured = client.stream.layer?.security != nil && server.stream.layer?.security != nil
    try expect(
      isSecured || client.hasShutDown || server.hasShutDown,
      "a handshake stands still")
  }

  func end() {
    client.close(resets: true)
    server.close(resets: true)
  }
}
