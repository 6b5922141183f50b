// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore
public import LongLinkTransport

extension LongLinkServer {
  /// Sets the function that accepts connections by address. Call it before `start`, and only once;
  /// it traps otherwise.
  ///
  /// The function is called before any frame is read. If it returns false, the connection is closed
  /// and counted in `rejections`. The address is the client's, also behind one of the
  /// `addresses.proxies`; nil if there is none, as over a Unix socket. The function runs on a loop,
  /// which it must not block: look the address up in a table.
  public func onAccept(
    fileID: StaticString = #fileID, line: UInt = #line,
    _ handler: @escaping @Sendable (SocketAddress?) -> Bool
  ) {
    setOnce(.onAccept, at: SettingPlace(fileID, line)) { $0.accept = handler }
  }

  /// Sets the function that is called when a client has connected, on the loop of its connection.
  /// It must not block: it would hold up all connections of that loop. Call `onConnect` before
  /// `start`, and only once; it traps otherwise.
  ///
  /// A client that opens another connection, to renew its credential or after a change of network,
  /// is not a new client: see `ClientIdentity`. A client without an identity is a new one with each
  /// connection. Requests over HTTP call neither this function nor the others about clients and
  /// connections, except that of `onAccept`.
  public func onConnect(
    fileID: StaticString = #fileID, line: UInt = #line,
    _ handler: @escaping @Sendable (Peer) -> Void
  ) {
    setOnce(.onConnect, at: SettingPlace(fileID, line)) { $0.connect = handler }
  }

  /// Sets the function that is called when a client has left, on the loop of its last connection:
  /// once for each call of the function of `onConnect`. It must not block: it would hold up all
  /// connections of that loop. Call `onDisconnect` before `start`, and only once; it traps
  /// otherwise.
  ///
  /// A client has left when its last connection has ended and it has not opened another one within
  /// `identity.linger`, 0 s by default. During that time, `peers()` and `peers(of:)` do not contain
  /// it, and pushes to it fail, although it has not left: to know which clients are present, keep a
  /// list in the functions of `onConnect` and `onDisconnect`.
  public func onDisconnect(
    fileID: StaticString = #fileID, line: UInt = #line,
    _ handler: @escaping @Sendable (Peer) -> Void
  ) {
    setOnce(.onDisconnect, at: SettingPlace(fileID, line)) { $0.disconnect = handler }
  }

  /// Sets the function that is called when a connection has opened, on the connection's loop, for
  /// applications that count connections. It must not block: it would hold up all connections of
  /// that loop. Call `onConnectionOpened` before `start`, and only once; it traps otherwise.
  ///
  /// For the first connection of a client it is called after the function of `onConnect`.
  public func onConnectionOpened(
    fileID: StaticString = #fileID, line: UInt = #line,
    _ handler: @escaping @Sendable (Peer) -> Void
  ) {
    setOnce(.onConnectionOpened, at: SettingPlace(fileID, line)) { $0.connectionOpened = handler }
  }

  /// Sets the function that is called when a connection that had opened has ended, on the
  /// connection's loop. It must not block: it would hold up all connections of that loop. Call
  /// `onConnectionEnded` before `start`, and only once; it traps otherwise.
  ///
  /// For the last connection of a client it is called before the function of `onDisconnect`.
  public func onConnectionEnded(
    fileID: StaticString = #fileID, line: UInt = #line,
    _ handler: @escaping @Sendable (Peer) -> Void
  ) {
    setOnce(.onConnectionEnded, at: SettingPlace(fileID, line)) { $0.connectionEnded = handler }
  }

  /// Sets the function that is called with each push of a type. Call it before `start`; it traps
  /// afterwards, and if the type has a function already.
  ///
  /// The function runs on the connection's loop, which it must not block. A push that `rule` does
  /// not allow is dropped and counted in `pushesDenied`. Default: the rule of `require(_:)`.
  public func onPush(
    _ type: MessageType, requires rule: AccessRule? = nil,
    fileID: StaticString = #fileID, line: UInt = #line,
    _ handler: @escaping @Sendable (Push, Peer) -> Void
  ) {
    setOnce(.onPush(type), at: SettingPlace(fileID, line)) { hooks in
      hooks.pushes[type] = handler
      hooks.pushRules[type] = rule
    }
  }

  /// Adds a service, which is told when the server starts and stops. Call it before `start`; it
  /// traps afterwards.
  package func add(_ service: any ServerService) {
    beforeStart("add a service") { $0.services.append(service) }
  }

  /// Sets what watches the server for its operations port. Call it before `start`, and only once;
  /// it traps otherwise.
  package func setWatch(
    _ watch: some Observer & ServerService, fileID: StaticString, line: UInt
  ) {
    setOnce(.operationsPort, at: SettingPlace(fileID, line)) { hooks in
      hooks.observers.append(watch)
      hooks.services.append(watch)
    }
  }

  /// Sets the handler of a message type, and its own access rule unless `rule` is nil. It traps if
  /// the type has a handler already.
  func setRoute(
    _ type: MessageType, named name: String = "", requires rule: AccessRule?,
    at place: SettingPlace, _ route: Route
  ) {
    setOnce(.route(type), named: name, at: place) { hooks in
      router.set(type, named: name, route)
      hooks.rules[type] = rule
    }
  }

  /// Records a setting that can be made only once. It traps the second time, and names both places.
  func setOnce(
    _ setting: ServerHooks.Setting, named name: String = "", at place: SettingPlace,
    _ set: (inout ServerHooks) -> Void
  ) {
    beforeStart("set \(setting)") { hooks in
      let new = ServerHooks.Setting.Origin(name: name, place: place)
      if let first = hooks.origins.updateValue(new, forKey: setting) {
        // This is not a precondition, whose text would not be printed in a release build.
        fatalError(
          "\(setting) is set twice: first \(first), then \(new)", file: place.fileID,
          line: place.line)
      }
      set(&hooks)
    }
  }
}
