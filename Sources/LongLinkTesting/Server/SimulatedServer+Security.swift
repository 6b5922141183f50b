// SPDX-License-Identifier: Apache-2.0

public import LongLinkTransport

// What a server does below the security of its connections.
extension SimulatedServer {
  /// Sends bytes below the security on one connection, or by default on all, as they are. Without
  /// security it is like `send(bytes:to:)`.
  public func send(bytesBelowSecurity bytes: [UInt8], to connection: Int? = nil) {
    order { $0.sendBelow(bytes, to: connection) }
  }

  /// Ends one connection, or by default all, below the security, without the security's own end
  /// (TLS's close_notify). Reading continues.
  public func endBelowSecurity(of connection: Int? = nil) {
    order { $0.endBelow(connection) }
  }

  /// How connections are secured, by their numbers, once they are.
  public var security: [Int: ConnectionSecurity] { record.security }
}

extension ServerAction {
  /// Sends bytes on the request's connection below its security, as they are.
  public static func rawBelowSecurity(_ bytes: [UInt8]) -> ServerAction {
    ServerAction(step: .rawBelow(bytes))
  }

  /// Ends the server's side of the request's connection below its security, without the security's
  /// own end. Reading continues.
  public static let endBelowSecurity = ServerAction(step: .endBelow)
}
