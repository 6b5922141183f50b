// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkTransport

/// A stream whose other end is the test.
final class MemoryTransport: Transport {
  /// What the other end has sent and was not read.
  var inbox: [UInt8] = []
  var hasEnded = false
  /// What was written and was not taken, in pieces as it was written.
  private(set) var outbox: [[UInt8]] = []
  /// The bytes that writes may take.
  var room = Int.max
  /// What the next write throws.
  var failure: SocketError?
  private(set) var hasShutDown = false
  private(set) var closings: [String] = []
  private(set) var reads = 0
  private(set) var interest = Readiness.none
  private weak var handler: (any TransportHandler)?
  private var token: UInt64 = 0

  var localAddress: SocketAddress? { nil }
  var peerAddress: SocketAddress? { .ipv4(10, 0, 0, 9, port: 1) }
  /// The bytes that were written and that the other end has not taken.
  var unacknowledgedBytes: Int { outbox.reduce(0) { $0 + $1.count } }
  var hasUnreadBytes: Bool { !inbox.isEmpty }

  func attach(_ handler: any TransportHandler, token: UInt64) {
    self.handler = handler
    self.token = token
  }

  func setInterest(_ interest: Readiness) { self.interest = interest }

  func finishConnecting() throws(SocketError) -> Bool { true }

  func read(into buffer: inout OutputRawSpan) throws(SocketError) -> ReadOutcome {
    reads += 1
    guard !inbox.isEmpty else { return hasEnded ? .end : .wouldBlock }
    let count = min(inbox.count, buffer.freeCapacity)
    unsafe inbox.withUnsafeBytes {
      unsafe buffer.appendBytes(UnsafeRawBufferPointer(rebasing: $0[..<count]))
    }
    inbox.removeFirst(count)
    return .bytes(count)
  }

  func write(_ bytes: RawSpan) throws(SocketError) -> Int {
    if let failure { throw failure }
    let count = min(bytes.byteCount, room)
    room -= count
    guard count > 0 else { return 0 }
    unsafe bytes.withUnsafeBytes { bytes in
      outbox.append(unsafe Array(bytes[..<count]))
    }
    return count
  }

  func shutDownWriting() { hasShutDown = true }
  func close() { closings.append("close") }
  func reset() { closings.append("reset") }

  /// Takes what was written.
  func takeOutput() -> [UInt8] {
    defer { outbox = [] }
    return Array(outbox.joined())
  }

  /// Tells the stream above what it waits for, as a loop does in each turn.
  func deliver() {
    var ready = Readiness.none
    if !inbox.isEmpty || hasEnded { ready = ready.union(.read) }
    if room > 0 { ready = ready.union(.write) }
    ready = ready.intersection(interest)
    if ready != .none { handler?.transportReady(ready, token: token) }
  }
}
