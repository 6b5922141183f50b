// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
package import LongLinkTransport

/// Forwards TCP connections to a server, and can hold or reset them. Lives on its loop.
///
/// While it holds, bytes stay where they are, and new connections are neither accepted nor refused.
/// That is what a partition looks like to both sides.
package final class Relay: TransportHandler {
  private let loop: EventLoop
  private let target: SocketAddress
  private let listener: any TransportListener
  private var pairs: [RelayedPair] = []
  package private(set) var isHolding = false

  package init(to target: SocketAddress, on loop: EventLoop) throws(SocketError) {
    self.loop = loop
    self.target = target
    listener = try loop.driver.listen(
      on: .ipv4(127, 0, 0, 1, port: 0), options: SocketOptions())
    listener.attach(self, token: 0)
    listener.setInterest(.read)
  }

  package var port: UInt16? { listener.localAddress.port }

  package func transportReady(_ readiness: Readiness, token: UInt64) {
    do throws(SocketError) {
      while !isHolding, let accepted = try listener.accept() {
        let near = try accepted.adopt(on: loop)
        do throws(SocketError) {
          let far = try loop.driver.connect(to: target, options: SocketOptions())
          pairs.append(
            RelayedPair(near: near, far: far) { [unowned self] pair in
              pairs.removeAll { $0 === pair }
            })
        } catch {
          near.reset()
        }
      }
    } catch {
      // The connection that could not be accepted is gone; the next one is reported again.
    }
  }

  /// Stops forwarding until `release`.
  package func hold() {
    isHolding = true
    listener.setInterest([])
    for pair in pairs { pair.hold() }
  }

  /// Forwards again, beginning with the bytes that have waited.
  package func release() {
    isHolding = false
    listener.setInterest(.read)
    for pair in pairs { pair.release() }
  }

  /// Resets all connections.
  package func cut() {
    for pair in pairs { pair.end() }
  }

  package func close() {
    cut()
    listener.close()
  }
}

/// One connection through a relay.
private final class RelayedPair: TransportHandler {
  private final class Side {
    /// Nil once it has failed while the relay held.
    var stream: (any Transport)?
    /// Bytes from the other side that are not yet written to this one.
    var outgoing = ByteQueue()
    var hasEnded = false
    var isShutDown = false

    init(_ stream: any Transport) {
      self.stream = stream
    }
  }

  private let sides: [Side]
  private var isConnected = false
  private var isHeld = false
  private var isOver = false
  private let onEnd: (RelayedPair) -> Void

  /// The maximum number of bytes that wait in each direction.
  private static let room = 65_536

  init(near: any Transport, far: any Transport, onEnd: @escaping (RelayedPair) -> Void) {
    sides = [Side(near), Side(far)]
    self.onEnd = onEnd
    for (token, side) in sides.enumerated() { side.stream?.attach(self, token: UInt64(token)) }
    updateInterest()
  }

  func transportReady(_ readiness: Readiness, token: UInt64) {
    guard !isOver else { return }
    let index = Int(token)
    guard !isHeld else {
      // Without interest only errors are reported. Close the stream, so that this one is not
      // reported in each turn, but do not pass it on while the relay holds.
      sides[index].stream?.close()
      sides[index].stream = nil
      return
    }
    do throws(SocketError) {
      if index == 1, !isConnected {
        guard let far = sides[1].stream, try far.finishConnecting() else { return }
        isConnected = true
      }
      if readiness.contains(.read), isConnected { try read(from: index) }
      for index in sides.indices { try write(to: index) }
    } catch {
      end()
      return
    }
    if sides.allSatisfy({ $0.isShutDown }) { end() } else { updateInterest() }
  }

  private func read(from index: Int) throws(SocketError) {
    guard let stream = sides[index].stream, !sides[index].hasEnded else { return }
    let free = RelayedPair.room - sides[1 - index].outgoing.count
    guard free > 0 else { return }
    let outcome = try sides[1 - index].outgoing.append(capacity: free) {
      (span) throws(SocketError) in try stream.read(into: &span)
    }
    if outcome == .end { sides[index].hasEnded = true }
  }

  private func write(to index: Int) throws(SocketError) {
    guard let stream = sides[index].stream, isConnected else { return }
    let side = sides[index]
    if !side.outgoing.isEmpty {
      let start = side.outgoing.position
      let written = try side.outgoing.withBytes(start..<start + side.outgoing.count) {
        (bytes) throws(SocketError) in try stream.write(bytes)
      }
      side.outgoing.removeFirst(written)
    }
    if sides[index].outgoing.isEmpty, sides[1 - index].hasEnded, !sides[index].isShutDown {
      sides[index].isShutDown = true
      stream.shutDownWriting()
    }
  }

  private func updateInterest() {
    for (index, side) in sides.enumerated() {
      var interest: Readiness = []
      if isConnected, !side.hasEnded, sides[1 - index].outgoing.count < RelayedPair.room {
        interest.insert(.read)
      }
      if !side.outgoing.isEmpty || (index == 1 && !isConnected) { interest.insert(.write) }
      side.stream?.setInterest(interest)
    }
  }

  func hold() {
    isHeld = true
    for side in sides { side.stream?.setInterest([]) }
  }

  func release() {
    isHeld = false
    if sides.contains(where: { $0.stream == nil }) { end() } else { updateInterest() }
  }

  /// Resets the connection on both sides.
  func end() {
    guard !isOver else { return }
    isOver = true
    for index in sides.indices {
      sides[index].stream?.reset()
      sides[index].stream = nil
    }
    onEnd(self)
  }
}
