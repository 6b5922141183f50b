// SPDX-License-Identifier: Apache-2.0

public import LongLinkTransport

// What a server does below the security of its connections.
extension SimulatedServer {
  /// Sends bytes unchanged below the security on one connection, or by default on all. Without
  /// security, it is like `send(bytes:to:)`.
  public func send(bytesBelowSecurity bytes: [UInt8], to connection: Int? = nil) {
    order { $0.sendBelow(bytes, to: connection) }
  }

  /// Ends the server's side of one connection, or by default of all, below the security: without
  /// the security's own end (TLS's close_notify). Reading continues. Without security, it ends the
  /// side after earlier output.
  public func endBelowSecurity(of connection: Int? = nil) {
    order { $0.endBelow(connection) }
  }

  /// The security of each connection, by the connection's number. It appears when the connection
  /// has become secure, and stays after its end.
  public var security: [Int: ConnectionSecurity] { record.security }
}

extension ServerAction {
  /// Sends bytes unchanged on the request's connection, below its security. Without security, it is
  /// like `raw`.
  public static func rawBelowSecurity(_ bytes: [UInt8]) -> ServerAction {
    ServerAction(step: .rawBelow(bytes))
  }

  /// Ends the server's side of the request's connection below its security, without the security's
  /// own end (TLS's close_notify). Reading continues.
  public static let endBelowSecurity = ServerAction(step: .endBelow)
}
