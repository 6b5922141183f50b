// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Synchronization
import Testing

@_spi(Loop) @testable import LongLinkTransport

/// A carrier that counts what it is told.
private final class Carrier: TransportCarrier {
  struct Told: Equatable, Sendable {
    var outputs = 0
    var rooms = 0
    var closings: [Bool] = []
  }

  private let state = Mutex(Told())

  var told: Told { state.withLock { $0 } }

  func outputWaits() { state.withLock { $0.outputs += 1 } }
  func inputHasRoom() { state.withLock { $0.rooms += 1 } }
  func transportClosed(isReset: Bool) { state.withLock { $0.closings.append(isReset) } }
}

/// A bridged stream on a loop that the test turns.
private struct Station {
  let bench: Bench
  let bridge: TransportBridge
  let carrier = Carrier()
  let watch = Watch()
  let stream: BridgedTransport

  init(isConnected: Bool = true) throws {
    let bench = try Bench(.poll)
    self.bench = bench
    let bridge = TransportBridge(isConnected: isConnected)
    self.bridge = bridge
    let carrier = carrier
    let watch = watch
    stream = bench.onLoop {
      let stream = BridgedTransport(bridge, carrier: carrier, on: bench.loop)
      stream.attach(watch, token: 7)
      return stream
    }
  }

  func deliver(_ bytes: [UInt8]) -> Bool {
    unsafe bytes.withUnsafeBytes { unsafe bridge.deliver($0) }
  }

  /// Closes the stream, and lets the loop go of it.
  func close() {
    bench.onLoop { stream.close() }
    bench.poll()
  }

  func interest(_ interest: Readiness) {
    bench.onLoop { stream.setInterest(interest) }
  }

  func write(_ count: Int) throws -> Int {
    try bench.onLoop {
      try unsafe stream.write([UInt8](repeating: 1, count: count).span.bytes)
    }
  }

  /// Reads up to so many bytes; nil if there are none yet, an empty array at the end.
  func read(_ count: Int) throws -> [UInt8]? {
    var queue = ByteQueue()
    let outcome = try bench.onLoop {
      try queue.append(capacity: count) { (span) throws(SocketError) in
        try stream.read(into: &span)
      }
    }
    return outcome == .wouldBlock ? nil : queue.takeAll()
  }
}

@Suite struct BridgedTransportTests {
  @Test func `pieces of one turn are one call, and are read in their order`() throws {
    let station = try Station()
    station.interest(.read)
    station.bench.poll()
    #expect(station.watch.calls == [])
    for piece in [[1, 2, 3], [4], [5, 6]] as [[UInt8]] { #expect(station.deliver(piece)) }
    station.watch.onReady = { _, _ in
      guard station.watch.calls.count == 1 else { return }
      #expect((try? station.read(4)) == [1, 2, 3, 4])
      #expect((try? station.read(4)) == [5, 6])
      #expect((try? station.read(4)) == .some(nil))
    }
    station.bench.poll()
    station.bench.poll()
    #expect(station.watch.calls == [.init(readiness: .read, token: 7)])
    // It holds the station, which holds it.
    station.watch.onReady = nil
    station.close()
  }

  @Test func `bytes that wait are held, output only while it is full`() throws {
    let station = try Station()
    let held = { station.bench.onLoop { station.stream.layer?.heldBytes } }
    #expect(held() == 0)
    _ = station.deliver([1, 2, 3])
    #expect(held() == 3)
    _ = try station.read(2)
    #expect(held() == 3)
    _ = try station.read(2)
    #expect(try station.read(2) == nil)
    #expect(held() == 0)
    #expect(try station.write(TransportBridge.capacity) == TransportBridge.capacity)
    #expect(held() == 0)
    #expect(try station.write(1) == 0)
    #expect(held() == TransportBridge.capacity)
    _ = station.bridge.takeOutput()
    #expect(held() == 0)
    station.close()
  }

  @Test func `readiness lasts as long as bytes wait, turn by turn`() throws {
    let station = try Station()
    station.interest(.read)
    _ = station.deliver([1])
    for _ in 0..<3 { station.bench.poll() }
    #expect(station.watch.calls.count >= 3)
    #expect(try station.read(8) == [1])
    station.bench.poll()
    let count = station.watch.calls.count
    station.bench.poll()
    #expect(station.watch.calls.count == count)
    station.close()
  }

  @Test func `the end and a failure come behind the bytes`() throws {
    for fails in [false, true] {
      let station = try Station()
      _ = station.deliver([1, 2])
      let failure = SocketError(operation: "read", errno: 104)
      if fails { station.bridge.fail(failure, text: "why") } else { station.bridge.endInput() }
      _ = station.deliver([3])
      #expect(try station.read(8) == [1, 2])
      if fails {
        #expect(throws: failure) { _ = try station.read(8) }
        #expect(throws: failure) { _ = try station.write(1) }
        #expect(station.stream.layer?.failureText == "why")
      } else {
        #expect(try station.read(8) == [])
        #expect(try station.write(1) == 1)
      }
      station.close()
    }
  }

  @Test func `a failure is told although nothing is of interest, once`() throws {
    let station = try Station()
    station.bench.poll()
    station.bridge.fail(SocketError(operation: "read", errno: 104))
    for _ in 0..<4 { station.bench.poll() }
    #expect(station.watch.calls == [.init(readiness: .read, token: 7)])
    station.close()
  }

  @Test func `nothing is written before it is connected, and a failure until then is thrown`()
    throws
  {
    let station = try Station(isConnected: false)
    station.interest(.write)
    station.bench.poll()
    #expect(station.watch.calls == [])
    #expect(try station.write(1) == 0)
    #expect(try station.bench.onLoop { try station.stream.finishConnecting() } == false)
    station.bridge.connected()
    station.bench.poll()
    #expect(station.watch.calls.first?.readiness == .write)
    #expect(try station.bench.onLoop { try station.stream.finishConnecting() })
    station.close()

    let failing = try Station(isConnected: false)
    let failure = SocketError(operation: "POST", errno: 111)
    failing.bridge.fail(failure)
    failing.bridge.connected()
    #expect(throws: failure) {
      _ = try failing.bench.onLoop { try failing.stream.finishConnecting() }
    }
    failing.close()
  }

  @Test func `what waits is bounded in both directions`() throws {
    let station = try Station()
    let capacity = TransportBridge.capacity
    #expect(try station.write(2 * capacity) == capacity)
    #expect(try station.write(1) == 0)
    #expect(station.carrier.told.outputs == 1)
    station.interest(.write)
    station.bench.poll()
    #expect(station.watch.calls == [])
    #expect(station.bridge.takeOutput().bytes.count == capacity)
    station.bench.poll()
    #expect(station.watch.calls.first?.readiness == .write)
    #expect(try station.write(1) == 1)
    #expect(station.carrier.told.outputs == 2)

    #expect(station.deliver([UInt8](repeating: 1, count: capacity - 1)))
    #expect(!station.deliver([1]))
    #expect(station.carrier.told.rooms == 0)
    #expect(try station.read(10)?.count == 10)
    #expect(station.carrier.told.rooms == 1)
    station.close()
  }

  @Test func `the end of the output is told, and closing once`() throws {
    let station = try Station()
    #expect(try station.write(3) == 3)
    station.bench.onLoop { station.stream.shutDownWriting() }
    #expect(station.carrier.told.outputs == 1)
    let (bytes, hasEnded) = station.bridge.takeOutput()
    #expect(bytes.count == 3 && hasEnded)
    #expect(throws: SocketError.self) { _ = try station.write(1) }
    station.bench.onLoop {
      station.stream.close()
      station.stream.reset()
    }
    #expect(station.carrier.told.closings == [false])
    #expect(station.bridge.isClosed)
    #expect(station.deliver([UInt8](repeating: 1, count: 1_000_000)))
  }

  @Test func `a stream that is dropped is closed`() throws {
    let bench = try Bench(.poll)
    let carrier = Carrier()
    let bridge = TransportBridge(isConnected: true)
    bench.onLoop { _ = BridgedTransport(bridge, carrier: carrier, on: bench.loop) }
    #expect(carrier.told.closings == [false])
    bridge.fail(SocketError(operation: "read", errno: 104))
    bench.poll()
  }
}
