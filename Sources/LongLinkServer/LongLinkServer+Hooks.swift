// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore
public import LongLinkTransport

extension LongLinkServer {
  /// Sets the function that accepts connections by address. Call it before `start`; it traps
  /// afterwards.
  ///
  /// The function is called before any frame is read. If it returns false, the connection is closed
  /// and counted in `rejections`. The address is the client's, also behind one of the `proxies`;
  /// nil if there is none, as over a Unix socket. The function runs on a loop, which it must not
  /// block: look the address up in a table.
  public func onAccept(_ handler: @escaping @Sendable (SocketAddress?) -> Bool) {
    beforeStart("set onAccept") { $0.accept = handler }
  }

  /// Sets the function that is called on the loop of a new connection. Call it before `start`; it
  /// traps afterwards.
  public func onConnect(_ handler: @escaping @Sendable (Peer) -> Void) {
    beforeStart("set onConnect") { $0.connect = handler }
  }

  /// Sets the function that is called on the loop of a connection that `onConnect` got, when it has
  /// ended. Call it before `start`; it traps afterwards.
  public func onDisconnect(_ handler: @escaping @Sendable (Peer) -> Void) {
    beforeStart("set onDisconnect") { $0.disconnect = handler }
  }

  /// Sets the function that is called with each push of a type, replacing any earlier one. Call it
  /// before `start`; it traps afterwards.
  ///
  /// The function runs on the connection's loop, which it must not block. A push that `rule` does
  /// not allow is dropped and counted in `pushesDenied`. Default: the rule of `require(_:)`.
  public func onPush(
    _ type: MessageType, requires rule: AccessRule? = nil,
    _ handler: @escaping @Sendable (Push, Peer) -> Void
  ) {
    beforeStart("set onPush of message type \(type)") { hooks in
      hooks.pushes[type] = handler
      hooks.pushRules[type] = rule
    }
  }

  /// Adds a service, which is told when the server starts and stops. Call it before `start`; it
  /// traps afterwards.
  package func add(_ service: any ServerService) {
    beforeStart("add a service") { $0.services.append(service) }
  }

  /// Sets the handler of a message type, and its rule if it has one of its own.
  func setRoute(_ type: MessageType, requires rule: AccessRule?, _ route: Route) {
    beforeStart("set the route of message type \(type)") { hooks in
      router.set(type, route)
      hooks.rules[type] = rule
    }
  }
}
