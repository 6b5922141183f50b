// SPDX-License-Identifier: Apache-2.0

/// A connected, or connecting, socket of one loop.
final class KernelTransport: Transport {
  let endpoint: KernelEndpoint
  let peerAddress: SocketAddress?
  private var local: SocketAddress?

  init(
    _ socket: consuming Socket,
    loop: EventLoop,
    driver: KernelDriver,
    peer: SocketAddress?
  ) {
    endpoint = KernelEndpoint(socket, loop: loop, driver: driver)
    peerAddress = peer
  }

  var localAddress: SocketAddress? {
    if local == nil, endpoint.descriptor >= 0 {
      local = try? SystemCall.localAddress(endpoint.descriptor)
    }
    return local
  }

  func attach(_ handler: any TransportHandler, token: UInt64) {
    endpoint.attach(handler, token: token)
  }

  func setInterest(_ interest: Readiness) {
    endpoint.setInterest(interest)
  }

  func finishConnecting() throws(SocketError) -> Bool {
    do throws(Errno) {
      try endpoint.requireUsable()
      let pending = try SystemCall.pendingError(endpoint.descriptor)
      guard pending == 0 else { throw Errno(pending) }
    } catch {
      throw SocketError(operation: "connect", errno: error.code, address: peerAddress)
    }
    // No error and no peer: the connect is still in progress.
    return SystemCall.hasPeer(endpoint.descriptor)
  }

  func read(into buffer: inout OutputRawSpan) throws(SocketError) -> ReadOutcome {
    precondition(!buffer.isFull, "a read needs room for a byte at least")
    do throws(Errno) {
      try endpoint.requireUsable()
      endpoint.driver.systemCalls.reads += 1
      let descriptor = endpoint.descriptor
      let count = try unsafe buffer.withUnsafeMutableBytes {
        (bytes, initialized) throws(Errno) -> Int? in
        let free = unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[initialized...])
        guard let count = try unsafe SystemCall.receive(descriptor, into: free) else { return nil }
        initialized += count
        return count
      }
      guard let count else { return .wouldBlock }
      return count == 0 ? .end : .bytes(count)
    } catch {
      throw SocketError(operation: "read", errno: error.code, address: peerAddress)
    }
  }

  func write(_ bytes: RawSpan) throws(SocketError) -> Int {
    do throws(Errno) {
      try endpoint.requireUsable()
      endpoint.driver.systemCalls.writes += 1
      let descriptor = endpoint.descriptor
      return try unsafe bytes.withUnsafeBytes { (bytes) throws(Errno) -> Int in
        try unsafe SystemCall.send(descriptor, bytes) ?? 0
      }
    } catch {
      throw SocketError(operation: "write", errno: error.code, address: peerAddress)
    }
  }

  var unacknowledgedBytes: Int {
    endpoint.requireOpen()
    // On a Unix-domain socket the call would count kernel memory, and no bytes are in flight.
    guard peerAddress?.family != .unix else { return 0 }
    return SystemCall.unacknowledgedBytes(endpoint.descriptor)
  }

  var roundTrip: Int64? {
    endpoint.requireOpen()
    return SystemCall.roundTrip(endpoint.descriptor)
  }

  var hasUnreadBytes: Bool {
    endpoint.requireOpen()
    return SystemCall.unreadBytes(endpoint.descriptor) > 0
  }

  func shutDownWriting() {
    endpoint.requireOpen()
    SystemCall.shutDownWriting(endpoint.descriptor)
  }

  func close() {
    endpoint.release()?.close()
  }

  func reset() {
    endpoint.release()?.reset()
  }
}
