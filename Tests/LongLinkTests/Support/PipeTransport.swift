// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

@testable import LongLinkTransport

/// One end of a pipe between two links of one loop, which writes down how it was used.
final class PipeTransport: Transport {
  /// What each write took.
  private(set) var writes: [Int] = []
  /// The most that a write takes.
  var room = Int.max
  /// Why each write fails, where it does.
  var failure: Int32?
  /// Said in place of the truth.
  var hasUnreadBytes = false
  private weak var other: PipeTransport?
  private weak var handler: (any TransportHandler)?
  private var token: UInt64 = 0
  private var inbox: [UInt8] = []
  private(set) var interest = Readiness.none
  /// Whether the other end writes no more.
  var hasEnded = false

  static func pair() -> (PipeTransport, PipeTransport) {
    let (one, other) = (PipeTransport(), PipeTransport())
    one.other = other
    other.other = one
    return (one, other)
  }

  func forgetWrites() -> [Int] {
    defer { writes = [] }
    return writes
  }

  /// Hands over what the other end has written; false where that is nothing.
  func deliver() -> Bool {
    guard !inbox.isEmpty else { return false }
    handler?.transportReady(.read, token: token)
    return true
  }

  /// Tells that there is room to write again.
  func offerRoom() { handler?.transportReady(.write, token: token) }

  /// Tells of these bytes once, as if the other end had written them.
  func offer(_ bytes: [UInt8]) {
    inbox += bytes
    handler?.transportReady(.read, token: token)
  }

  /// Has these bytes read, as if the other end had written them.
  func bring(_ bytes: [UInt8]) {
    inbox += bytes
    var left = inbox.count + 1
    while inbox.count < left {
      left = inbox.count
      guard deliver() else { return }
    }
    preconditionFailure("nobody reads: \(left) bytes are left")
  }

  var localAddress: SocketAddress? { nil }
  var peerAddress: SocketAddress? { nil }
  var unacknowledgedBytes: Int { 0 }

  func attach(_ handler: any TransportHandler, token: UInt64) {
    self.handler = handler
    self.token = token
  }

  func setInterest(_ interest: Readiness) { self.interest = interest }
  func finishConnecting() throws(SocketError) -> Bool { true }

  func read(into buffer: inout OutputRawSpan) throws(SocketError) -> ReadOutcome {
    guard !inbox.isEmpty else { return hasEnded ? .end : .wouldBlock }
    let count = min(buffer.freeCapacity, inbox.count)
    for byte in inbox.prefix(count) { buffer.append(byte) }
    inbox.removeFirst(count)
    return .bytes(count)
  }

  func write(_ bytes: RawSpan) throws(SocketError) -> Int {
    if let failure {
      writes.append(0)
      throw SocketError(operation: "write", errno: failure)
    }
    let count = min(room, bytes.byteCount)
    writes.append(count)
    other?.inbox += [UInt8](decoding: bytes.extracting(0..<count))
    return count
  }

  func shutDownWriting() {}
  func close() {}
  func reset() {}
}

/// A world without sockets, in which no time passes by itself.
final class StillDriver: LoopDriver {
  var now = LinkInstant(nanoseconds: 1_000_000_000)
  /// How much `preemptions` grows each time that somebody looks; nil where nothing is known of it.
  var preemptionsPerLook: Int? = 0
  private var looks = 0
  var preemptions: Int? {
    looks += 1
    return preemptionsPerLook.map { $0 * looks }
  }

  var unixNanoseconds: Int64 { 0 }
  func wait(until deadline: LinkInstant?) {}
  func wake() {}
  func letOthersRun() -> Bool { false }
  func nextRandom() -> UInt64 { 0 }
  func close() {}

  func connect(
    to address: SocketAddress, options: SocketOptions
  ) throws(SocketError) -> any Transport {
    throw SocketError(operation: "connect", errno: 0, address: address)
  }

  func listen(
    on address: SocketAddress, options: SocketOptions
  ) throws(SocketError) -> any TransportListener {
    throw SocketError(operation: "listen", errno: 0, address: address)
  }

  func resolve(
    host: String, port: UInt16, for owner: LookUpOwner,
    completion: @escaping @Sendable (Result<[SocketAddress], ResolveError>) -> Void
  ) {}

  func withdrawLookUps(of owner: LookUpOwner) {}
}
