// SPDX-License-Identifier: Apache-2.0

/// The common part of a transport and a listener: a socket, and its registration with a loop's
/// poller.
final class KernelEndpoint {
  let loop: EventLoop
  let driver: KernelDriver
  /// The socket's descriptor; -1 once closed.
  private(set) var descriptor: CInt
  /// Why the poller could not watch the socket. The next use of the socket reports it.
  private(set) var failure: Errno?
  private var socket: Socket?
  private var key: PollKey?
  private var interest: Readiness = []

  init(_ socket: consuming Socket, loop: EventLoop, driver: KernelDriver) {
    self.loop = loop
    self.driver = driver
    descriptor = socket.descriptor
    self.socket = consume socket
  }

  deinit {
    guard let key else { return }
    if loop.isCurrent {
      driver.unregister(key)
    } else if let descriptor = socket.take()?.relinquish() {
      // The registration belongs to the loop, and must end before the descriptor is closed.
      loop.execute { [loop] in
        (loop.driver as? KernelDriver)?.unregister(key)
        SystemCall.close(descriptor)
      }
    }
  }

  func attach(_ handler: any TransportHandler, token: UInt64) {
    requireOpen()
    if let key {
      driver.replace(key, handler, token: token)
    } else {
      key = driver.register(descriptor, handler, token: token)
      applyInterest()
    }
  }

  func setInterest(_ interest: Readiness) {
    requireOpen()
    guard interest != self.interest else { return }
    self.interest = interest
    applyInterest()
  }

  private func applyInterest() {
    guard let key else { return }
    do throws(Errno) {
      try driver.setInterest(key, interest)
    } catch {
      failure = error
    }
  }

  /// Ends the registration and returns the socket; nil if that was done before.
  func release() -> Socket? {
    descriptor = -1
    if let key = key.take() { driver.unregister(key) }
    return socket.take()
  }

  @inline(__always)
  func requireOpen() {
    precondition(descriptor >= 0, "a transport or listener was used after it was closed")
  }

  /// Traps if the endpoint is closed, and throws if the poller could not watch the socket.
  @inline(__always)
  func requireUsable() throws(Errno) {
    requireOpen()
    if let failure { throw failure }
  }
}
