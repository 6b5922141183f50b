// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary
internal import Synchronization

/// An accepted socket that no loop owns yet.
final class KernelAcceptedTransport: AcceptedTransport {
  let peerAddress: SocketAddress?
  private let socket: Mutex<Socket?>

  init(_ socket: consuming Socket, peer: SocketAddress?) {
    peerAddress = peer
    self.socket = Mutex(consume socket)
  }

  func adopt(on loop: EventLoop) throws(SocketError) -> any Transport {
    loop.preconditionCurrent()
    guard let driver = loop.driver as? KernelDriver else {
      preconditionFailure("a loop over the kernel is needed for a transport of the kernel")
    }
    guard let socket = socket.withLock({ $0.take() }) else {
      preconditionFailure("an accepted transport was adopted twice")
    }
    guard !driver.isClosed else {
      throw SocketError(operation: "accept", errno: ESHUTDOWN, address: peerAddress)
    }
    return KernelTransport(socket, loop: loop, driver: driver, peer: peerAddress)
  }
}
