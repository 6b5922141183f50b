// SPDX-License-Identifier: Apache-2.0

public import LongLink
internal import LongLinkDriver
public import LongLinkServer
@_spi(Loop) public import LongLinkTransport

/// Short links over a simulated network: each is a connection to a gateway's address.
package struct SimulatedShortLinkOpener: ShortLinkOpener {
  package let name: String
  package let isConfidential = true
  private let address: SocketAddress

  package init(to address: SocketAddress) {
    self.address = address
    name = "short://\(address)"
  }

  package func open(on loop: EventLoop) throws(SocketError) -> any Transport {
    try loop.driver.connect(to: address, options: SocketOptions())
  }
}

extension Way {
  /// Returns a way of short links to the ``SimulatedGateway`` at an address, for clients in a
  /// simulation.
  public static func simulatedShort(to address: SocketAddress) -> Way {
    Way(short: SimulatedShortLinkOpener(to: address))
  }
}

/// A gateway in a simulation: it listens at an address, and passes the connections that it accepts
/// to a server as short links.
///
/// Make it after the server has started, because connections before that are closed. Close it
/// before the simulation ends.
public final class SimulatedGateway: Sendable {
  /// The address where the gateway listens, with its actual port.
  public let address: SocketAddress
  private let listener: LoopBound<Listener>
  private let loop: EventLoop

  private final class Listener: TransportHandler {
    private let server: LongLinkServer
    private var socket: (any TransportListener)?

    init(_ server: LongLinkServer, _ socket: any TransportListener) {
      self.server = server
      self.socket = socket
      socket.attach(self, token: 0)
      socket.setInterest(.read)
    }

    func transportReady(_ readiness: Readiness, token: UInt64) {
      while let accepted = (try? socket?.accept()) ?? nil {
        server.accept(short: AcceptedShortLink(accepted))
      }
    }

    func close() {
      socket?.close()
      socket = nil
    }
  }

  private init(_ listener: LoopBound<Listener>, at address: SocketAddress, on loop: EventLoop) {
    self.listener = listener
    self.address = address
    self.loop = loop
  }

  /// Starts a gateway on a loop of the simulation. Throws an error whose description names the
  /// reason, such as `EADDRINUSE`, if it cannot listen at the address.
  public static func start(
    at address: SocketAddress, for server: LongLinkServer, on loop: EventLoop
  ) async throws -> SimulatedGateway {
    let result = await loop.run {
      Result { () throws(SocketError) in
        let socket = try loop.driver.listen(on: address, options: SocketOptions())
        return (LoopBound(Listener(server, socket), on: loop), socket.localAddress)
      }
    }
    let (listener, address) = try result.get()
    return SimulatedGateway(listener, at: address, on: loop)
  }

  /// Stops listening. Short links that were accepted continue.
  public func close() async {
    await loop.run { [listener] in listener.value.close() }
  }
}

/// An accepted connection whose stream reports failures in the way of short links.
private final class AcceptedShortLink: AcceptedTransport {
  private let base: any AcceptedTransport

  init(_ base: any AcceptedTransport) {
    self.base = base
  }

  var peerAddress: SocketAddress? { base.peerAddress }

  func adopt(on loop: EventLoop) throws(SocketError) -> any Transport {
    let stream = try base.adopt(on: loop)
    (stream as? SimulatedTransport)?.reportFailure()
    return stream
  }
}
