// SPDX-License-Identifier: Apache-2.0

/// A socket that accepts connections; used only on the loop it was made on.
package protocol TransportListener: AnyObject {
  /// The address it is bound to, with the port that the system chose.
  var localAddress: SocketAddress { get }

  /// Starts the delivery of readiness (`.read`: a connection waits).
  func attach(_ handler: any TransportHandler, token: UInt64)
  /// Sets which readiness is delivered; an empty interest pauses accepting.
  func setInterest(_ interest: Readiness)
  /// Accepts the next waiting connection, which any loop over the same environment can adopt; nil
  /// if there is none.
  ///
  /// Throws if a waiting connection could not be accepted (`EMFILE` and the like).
  func accept() throws(SocketError) -> (any AcceptedTransport)?
  /// Stops listening and, on a Unix-domain address, removes its file.
  func close()
}

/// An accepted connection on its way from the listener's loop to the loop that will own it.
package protocol AcceptedTransport: AnyObject, Sendable {
  /// The peer's address, if it has one.
  var peerAddress: SocketAddress? { get }
  /// Whether a trusted proxy in front of this process has decrypted the peer's bytes.
  var isSecuredByProxy: Bool { get }
  /// Makes the transport, on the loop that will own it. Call it at most once. Dropping the accepted
  /// transport without this call closes the connection.
  func adopt(on loop: EventLoop) throws(SocketError) -> any Transport
  /// Reports that the greeting is complete and the peer accepted; called on the loop that adopted
  /// the connection, at most once. False if the connection was given up meanwhile: nothing may run
  /// for it.
  func opened() -> Bool
}

extension AcceptedTransport {
  package var isSecuredByProxy: Bool { false }
  package func opened() -> Bool { true }
}
