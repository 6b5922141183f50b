// SPDX-License-Identifier: Apache-2.0

import CLongLinkSystem
import LongLinkCore
import Testing

@testable import LongLinkTransport

typealias PollerKind = EventLoop.Configuration.PollerKind

extension PollerKind {
  /// Every poller that this system has.
  static let all: [PollerKind] = {
    #if os(Linux)
    [.epoll, .poll]
    #else
    [.poll]
    #endif
  }()
}

/// A loop over the kernel that a test turns by itself, on its own thread.
struct Bench {
  let loop: EventLoop

  init(_ poller: PollerKind) throws {
    loop = EventLoop(driver: KernelDriver(poller: try poller.make()), name: "bench")
  }

  var driver: KernelDriver { loop.driver as! KernelDriver }

  /// Runs `body` as the loop would.
  func onLoop<R>(_ body: () throws -> R) rethrows -> R {
    let former = unsafe cll_current_loop()
    unsafe cll_set_current_loop(Unmanaged.passUnretained(loop).toOpaque())
    defer { unsafe cll_set_current_loop(former) }
    return try body()
  }

  /// Turns the loop until something holds, or has not come to hold in a time that nothing needs.
  func turn(
    _ what: Comment,
    until condition: () -> Bool,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let end = loop.driver.now.advanced(by: .seconds(30))
    while !condition() {
      loop.turn(waitingUntil: end)
      try #require(loop.driver.now < end, what, sourceLocation: sourceLocation)
    }
  }

  /// Turns the loop once without waiting.
  func poll() {
    loop.turn(waitingUntil: .distantPast)
  }

  func listen(
    on address: SocketAddress = .ipv4(127, 0, 0, 1, port: 0)
  ) throws -> any TransportListener {
    try onLoop { try driver.listen(on: address, options: SocketOptions()) }
  }

  func connect(to address: SocketAddress) throws -> End {
    let stream = try onLoop { try driver.connect(to: address, options: SocketOptions()) }
    return End(stream, bench: self)
  }

  /// A connected pair: the one that connected, and the one that was accepted.
  func pair(
    over address: SocketAddress = .ipv4(127, 0, 0, 1, port: 0)
  ) throws -> (End, End) {
    let listener = try listen(on: address)
    defer { onLoop { listener.close() } }
    let client = try connect(to: listener.localAddress)
    let server = try accept(from: listener)
    try turn("connected", until: { onLoop { (try? client.stream.finishConnecting()) ?? false } })
    return (client, server)
  }

  func accept(from listener: any TransportListener) throws -> End {
    let watch = Watch()
    onLoop {
      listener.attach(watch, token: 0)
      listener.setInterest(.read)
    }
    var accepted: (any AcceptedTransport)?
    try turn("accepted") {
      onLoop { accepted = try? listener.accept() }
      return accepted != nil
    }
    let stream = try onLoop { try accepted!.adopt(on: loop) }
    return End(stream, bench: self)
  }
}

/// Counts how often it was told of readiness.
final class Watch: TransportHandler {
  private(set) var calls: [Call] = []
  var onReady: ((Readiness, UInt64) -> Void)?

  struct Call: Equatable {
    var readiness: Readiness
    var token: UInt64
  }

  func transportReady(_ readiness: Readiness, token: UInt64) {
    calls.append(Call(readiness: readiness, token: token))
    onReady?(readiness, token)
  }
}

/// One end of a connection, which keeps what it has read.
final class End: TransportHandler {
  let stream: any Transport
  private let bench: Bench
  private(set) var received: [UInt8] = []
  private(set) var hasEnded = false
  private(set) var failure: SocketError?

  init(_ stream: any Transport, bench: Bench) {
    self.stream = stream
    self.bench = bench
  }

  /// Reads from now on all that comes.
  func beginReading() {
    bench.onLoop {
      stream.attach(self, token: 0)
      stream.setInterest(.read)
    }
  }

  func transportReady(_ readiness: Readiness, token: UInt64) {
    do throws(SocketError) {
      let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 1)
      defer { unsafe memory.deallocate() }
      var buffer = unsafe OutputRawSpan(buffer: memory, initializedCount: 0)
      let outcome = try stream.read(into: &buffer)
      unsafe buffer.bytes.withUnsafeBytes { unsafe received.append(contentsOf: $0) }
      if outcome == .end {
        hasEnded = true
        stream.setInterest([])
      }
    } catch {
      failure = error
      stream.setInterest([])
    }
  }

  /// Writes everything, which is to fit at once.
  func write(_ bytes: [UInt8]) throws {
    let count = try bench.onLoop { try unsafe stream.write(bytes.span.bytes) }
    try #require(count == bytes.count)
  }

  func close() {
    bench.onLoop { stream.close() }
  }
}
