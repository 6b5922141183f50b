// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore

extension LongLinkServer {
  /// Sets a synchronous handler for a message type. Call it before `start`; it traps afterwards,
  /// and if the type has a handler already.
  ///
  /// The handler runs on the connection's loop and must not block. It returns the body of a
  /// response with code 200, or throws a `Rejection` with another code. A `BodyError` becomes 400,
  /// a `CancellationError` 499, and any other error 500, which is logged.
  ///
  /// A request that `rule` does not allow is refused with 403, without calling the handler, and
  /// counted in `refusedAccess` of `ServerCounters.connections`. Default: the rule of
  /// `require(_:)`.
  public func route(
    _ type: MessageType, requires rule: AccessRule? = nil,
    fileID: StaticString = #fileID, line: UInt = #line,
    _ handler: @escaping @Sendable (InboundRequest) throws -> any BodyEncodable & Sendable
  ) {
    setRoute(type, requires: rule, at: SettingPlace(fileID, line), .inline(handler))
  }

  /// Sets an asynchronous handler for a message type. Call it before `start`; it traps afterwards,
  /// and if the type has a handler already.
  ///
  /// The handler runs in a task, by default on the connection's loop, which it must not block. The
  /// task is cancelled when the client cancels, the connection ends, or the request's deadline
  /// passes. What it returns and throws counts as for a synchronous handler. A request that `rule`
  /// does not allow is refused with 403, without calling the handler.
  public func route(
    _ type: MessageType, on placement: HandlerPlacement = .connectionLoop,
    requires rule: AccessRule? = nil, fileID: StaticString = #fileID, line: UInt = #line,
    _ handler: @escaping @Sendable (InboundRequest) async throws -> any BodyEncodable & Sendable
  ) {
    setRoute(type, requires: rule, at: SettingPlace(fileID, line), .task(placement, handler))
  }

  /// Sets the handler of a message type whose exchanges carry items. Call it before `start`; it
  /// traps afterwards, and if the type has a handler already.
  ///
  /// `shape` says which side sends items: `.requestItems`, `.responseItems`, or both. A request
  /// with another shape is refused with 400. The handler reads the client's items, writes its own,
  /// and returns the body of the response; an error that it throws becomes the response, after the
  /// items that it wrote, as for any handler. It runs in a task, which is cancelled when the client
  /// cancels, the connection ends, or the request's deadline passes, if it has one. If a wait for
  /// an item, or for the client to take one, lasts longer than `itemTimeout` (default nil: no
  /// limit), reading or writing throws `deadlineExceeded`; if the handler throws it on, the
  /// response is 408. A request that `rule` does not allow is refused with 403.
  public func routeStream(
    _ type: MessageType, _ shape: StreamShape, on placement: HandlerPlacement = .connectionLoop,
    itemTimeout: Duration? = nil, requires rule: AccessRule? = nil,
    fileID: StaticString = #fileID, line: UInt = #line,
    _ handler:
      @escaping @Sendable (InboundRequest, Items<[UInt8]>, ItemWriter<[UInt8]>) async throws
      -> any BodyEncodable & Sendable
  ) {
    setRoute(
      type, requires: rule, at: SettingPlace(fileID, line),
      .stream(StreamRoute(shape, on: placement, itemTimeout: itemTimeout, handler)))
  }

  /// Sets a synchronous handler for a method, which gets the decoded request. It runs on the
  /// connection's loop and must not block.
  ///
  /// A request whose body does not decode is refused with 400, one whose body needs too much memory
  /// to decode with 413 or 429, and one that `rule` does not allow with 403, without calling the
  /// handler. Call this before `start`; it traps afterwards, and if the message type of the method
  /// has a handler already.
  public func route<Request: BodyDecodable, Reply: BodyEncodable>(
    _ method: RPCMethod<Request, Reply>, requires rule: AccessRule? = nil,
    fileID: StaticString = #fileID, line: UInt = #line,
    _ handler: @escaping @Sendable (Request, InboundRequest) throws -> Reply
  ) {
    setRoute(
      method.type, named: method.fullName.text, requires: rule, at: SettingPlace(fileID, line),
      .inline { request in
        var lease: DecodedLease?
        defer { withExtendedLifetime(lease) {} }
        let message = try request.decoded(as: Request.self, lease: &lease)
        return try handler(message, request)
      })
  }

  /// Sets an asynchronous handler for a method, which gets the decoded request.
  ///
  /// The handler runs in a task, by default on the connection's loop. The task is cancelled when
  /// the client cancels, the connection ends, or the request's deadline passes. A request whose
  /// body does not decode is refused with 400, one whose body needs too much memory to decode with
  /// 413 or 429, and one that `rule` does not allow with 403, without calling the handler. Call
  /// this before `start`; it traps afterwards, and if the message type of the method has a handler
  /// already.
  public func route<Request: BodyDecodable, Reply: BodyEncodable>(
    _ method: RPCMethod<Request, Reply>, on placement: HandlerPlacement = .connectionLoop,
    requires rule: AccessRule? = nil, fileID: StaticString = #fileID, line: UInt = #line,
    _ handler: @escaping @Sendable (Request, InboundRequest) async throws -> Reply
  ) {
    setRoute(
      method.type, named: method.fullName.text, requires: rule, at: SettingPlace(fileID, line),
      .task(placement) { request in
        var lease: DecodedLease?
        defer { withExtendedLifetime(lease) {} }
        let message = try request.decoded(as: Request.self, lease: &lease)
        return try await handler(message, request)
      })
  }
}
