// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import LongLinkTransport
internal import NIOCore
internal import Synchronization

/// One request of a gateway on its way to a loop of the server, and then the carrier of its bytes.
///
/// The connection keeps only the bridge: if no loop adopts the exchange, its release refuses the
/// request.
final class GatewayExchange: AcceptedTransport, TransportCarrier {
  let peerAddress: LongLinkTransport.SocketAddress?
  let isSecuredByProxy: Bool
  private let bridge: TransportBridge
  /// Distinguishes the request from others on the same connection.
  private let number: Int
  private let gateway: GatewayState
  private let connectionID: UInt64
  private let connection: NIOLoopBound<GatewayHandler>
  private let loop: any NIOCore.EventLoop
  private let isAdopted = Atomic(false)
  /// The threads of the gateway, which run until the exchange is released.
  private let threads: GatewayThreads

  init(
    _ bridge: TransportBridge, number: Int, peer: LongLinkTransport.SocketAddress?,
    isSecuredByProxy: Bool, connection: GatewayHandler, on loop: any NIOCore.EventLoop,
    threads: GatewayThreads
  ) {
    self.bridge = bridge
    self.number = number
    peerAddress = peer
    self.isSecuredByProxy = isSecuredByProxy
    gateway = connection.gateway
    connectionID = connection.id
    self.connection = NIOLoopBound(connection, eventLoop: loop)
    self.loop = loop
    self.threads = threads
  }

  deinit {
    guard !isAdopted.load(ordering: .acquiring) else { return }
    loop.execute { [connection, number, threads] in
      connection.value.exchangeRefused(number)
      withExtendedLifetime(threads) {}
    }
  }

  func adopt(on loop: LongLinkTransport.EventLoop) throws(SocketError) -> any Transport {
    let wasAdopted = isAdopted.exchange(true, ordering: .acquiringAndReleasing)
    precondition(!wasAdopted, "an accepted stream was adopted twice")
    return BridgedTransport(bridge, carrier: self, on: loop, peerAddress: peerAddress)
  }

  func opened() -> Bool { gateway.opened(connectionID, request: number) }

  func outputWaits() {
    loop.execute { [connection, number] in connection.value.outputWaits(number) }
  }

  func inputHasRoom() {
    loop.execute { [connection, number] in connection.value.inputHasRoom(number) }
  }

  func transportClosed(isReset: Bool) {
    loop.execute { [connection, number] in
      connection.value.transportClosed(number, isReset: isReset)
    }
  }
}
#endif
