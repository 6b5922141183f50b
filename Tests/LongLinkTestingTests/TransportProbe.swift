// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkTesting
import LongLinkTransport

/// A stream with a handler that notes what it is told, for tests on the stream's loop.
final class TransportProbe: TransportHandler {
  let stream: any Transport
  /// What was told since the last look.
  private(set) var readiness: [Readiness] = []
  /// Read as soon as something is there.
  var readsAlong = false
  private(set) var bytes: [UInt8] = []
  private(set) var readSizes: [Int] = []
  private(set) var hasEnded = false
  private(set) var failure: CInt?

  init(_ stream: any Transport, interest: Readiness = [.read]) {
    self.stream = stream
    stream.attach(self, token: 1)
    stream.setInterest(interest)
  }

  func transportReady(_ readiness: Readiness, token: UInt64) {
    self.readiness.append(readiness)
    guard readsAlong else {
      // It would be told again for ever.
      stream.setInterest([])
      return
    }
    if readiness.contains(.read) { read() }
  }

  /// Reads once, and notes what came.
  @discardableResult
  func read(_ capacity: Int = 65_536) -> ReadOutcome? {
    var outcome: ReadOutcome?
    var queue = ByteQueue()
    do throws(SocketError) {
      outcome = try queue.append(capacity: capacity) { (span) throws(SocketError) in
        try stream.read(into: &span)
      }
    } catch {
      failure = error.errno
    }
    bytes += unsafe queue.withStorage { unsafe [UInt8]($0) }
    if case .bytes(let count) = outcome { readSizes.append(count) }
    if outcome == .end || failure != nil {
      hasEnded = outcome == .end
      stream.setInterest([])
    }
    return outcome
  }

  @discardableResult
  func write(_ bytes: [UInt8]) throws(SocketError) -> Int {
    // The elements are bytes: there is no padding between them.
    try unsafe stream.write(bytes.span.bytes)
  }

  func forgetReadiness() {
    readiness = []
  }
}

/// A listener with a handler that accepts, for tests on its loop.
final class ListenerProbe: TransportHandler {
  let listener: any TransportListener
  private let loop: EventLoop
  private(set) var accepted: [TransportProbe] = []

  init(_ address: SocketAddress, on loop: EventLoop, backlog: Int32 = 16) throws {
    self.loop = loop
    var options = SocketOptions()
    options.backlog = backlog
    listener = try loop.driver.listen(on: address, options: options)
    listener.attach(self, token: 1)
    listener.setInterest(.read)
  }

  var address: SocketAddress { listener.localAddress }

  func transportReady(_ readiness: Readiness, token: UInt64) {
    guard let stream = try? listener.accept()?.adopt(on: loop) else { return }
    accepted.append(TransportProbe(stream))
  }
}

/// Two ends of one link on the main loop of a simulation.
struct ProbePair {
  let client: TransportProbe
  let server: TransportProbe
  let listener: ListenerProbe
}

extension Simulation {
  static let freePort = SocketAddress.ipv4(127, 0, 0, 1, port: 0)

  /// Connects to a new listener; runs on the main loop.
  func connectedPair(options: SocketOptions = SocketOptions()) async throws -> ProbePair {
    let listener = try ListenerProbe(Self.freePort, on: mainLoop)
    let stream = try mainLoop.driver.connect(to: listener.address, options: options)
    let client = TransportProbe(stream, interest: .write)
    try await sleep(for: .milliseconds(50))
    _ = try stream.finishConnecting()
    client.forgetReadiness()
    return ProbePair(client: client, server: listener.accepted[0], listener: listener)
  }
}
