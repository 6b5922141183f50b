// SPDX-License-Identifier: Apache-2.0

import LongLinkTesting
import LongLinkTransport
import Synchronization

/// Opens short links of which the first is cut: behind so many bytes written, or read.
final class CuttingOpener: ShortLinkOpener {
  enum Cut: Sendable {
    /// The stream fails behind so many written bytes.
    case writing(Int)
    /// Reading fails behind so many bytes.
    case reading(Int)
    /// The answer ends, as if in good order, behind so many bytes.
    case ending(Int)
    /// Reading fails at once, with the request to wait so long.
    case refusing(Duration)
  }

  let name: String
  let isConfidential = true
  private let base: SimulatedShortLinkOpener
  private let cuts: Mutex<[Cut]>

  init(to address: SocketAddress, _ cuts: [Cut]) {
    base = SimulatedShortLinkOpener(to: address)
    name = base.name
    self.cuts = Mutex(cuts)
  }

  func open(on loop: EventLoop) throws(SocketError) -> any Transport {
    let stream = try base.open(on: loop)
    let cut = cuts.withLock { $0.isEmpty ? nil : $0.removeFirst() }
    return cut.map { CutTransport(stream, $0) } ?? stream
  }
}

private final class CutTransport: Transport, TransportLayer {
  private let base: any Transport
  private let cut: CuttingOpener.Cut
  private var written = 0
  private var read = 0

  init(_ base: any Transport, _ cut: CuttingOpener.Cut) {
    self.base = base
    self.cut = cut
  }

  var localAddress: SocketAddress? { base.localAddress }
  var peerAddress: SocketAddress? { base.peerAddress }
  var layer: (any TransportLayer)? { self }
  var failureText: String? { "cut by the test" }
  var retryAfter: Int64? {
    if case .refusing(let wait) = cut { wait.clampedNanoseconds } else { nil }
  }
  var unacknowledgedBytes: Int { base.unacknowledgedBytes }
  var hasUnreadBytes: Bool { base.hasUnreadBytes }

  func attach(_ handler: any TransportHandler, token: UInt64) { base.attach(handler, token: token) }
  func setInterest(_ interest: Readiness) { base.setInterest(interest) }
  func finishConnecting() throws(SocketError) -> Bool { try base.finishConnecting() }

  func read(into buffer: inout OutputRawSpan) throws(SocketError) -> ReadOutcome {
    switch cut {
    case .writing: return try base.read(into: &buffer)
    case .refusing: throw SocketError(operation: "read", errno: 104)
    case .reading(let limit):
      guard read < limit else { throw SocketError(operation: "read", errno: 104) }
      return try readOne(into: &buffer)
    case .ending(let limit):
      guard read < limit else { return .end }
      return try readOne(into: &buffer)
    }
  }

  private func readOne(into buffer: inout OutputRawSpan) throws(SocketError) -> ReadOutcome {
    var byte: UInt8 = 0
    let outcome = try unsafe withUnsafeMutableBytes(of: &byte) {
      (bytes) throws(SocketError) -> ReadOutcome in
      var span = unsafe OutputRawSpan(buffer: bytes, initializedCount: 0)
      return try base.read(into: &span)
    }
    guard case .bytes = outcome else { return outcome }
    buffer.append(byte)
    read += 1
    return outcome
  }

  func write(_ bytes: RawSpan) throws(SocketError) -> Int {
    guard case .writing(let limit) = cut else { return try base.write(bytes) }
    guard written < limit else { throw SocketError(operation: "write", errno: 104) }
    let count = try base.write(bytes.extracting(0..<min(bytes.byteCount, limit - written)))
    written += count
    return count
  }

  func shutDownWriting() { base.shutDownWriting() }
  func close() { base.close() }
  func reset() { base.reset() }
}
