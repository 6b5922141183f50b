// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore

extension LongLinkServer {
  /// Sets a synchronous handler for a message type. Call it before `start`; it traps afterwards.
  ///
  /// The handler runs on the connection's loop and must not block. It returns the body of a
  /// response with code 200, or throws a `Rejection` with another code. Other errors become 500.
  public func route(
    _ type: MessageType,
    _ handler: @escaping @Sendable (InboundRequest) throws -> any BodyEncodable & Sendable
  ) {
    setRoute(type, .inline(handler))
  }

  /// Sets an asynchronous handler for a message type. Call it before `start`; it traps afterwards.
  ///
  /// The handler runs in a task, by default on the connection's loop. The task is cancelled when
  /// the client cancels, the connection ends, or the request's deadline passes.
  public func route(
    _ type: MessageType, on placement: HandlerPlacement = .connectionLoop,
    _ handler: @escaping @Sendable (InboundRequest) async throws -> any BodyEncodable & Sendable
  ) {
    setRoute(type, .task(placement, handler))
  }

  /// Sets a synchronous handler for a method, which gets the decoded request.
  ///
  /// A request whose body does not decode is refused with 400, without calling the handler. Call
  /// this before `start`; it traps afterwards.
  public func route<Request: BodyDecodable, Reply: BodyEncodable>(
    _ method: RPCMethod<Request, Reply>,
    _ handler: @escaping @Sendable (Request, InboundRequest) throws -> Reply
  ) {
    route(method.type) { request in
      try handler(try request.decoded(as: Request.self), request)
    }
  }

  /// Sets an asynchronous handler for a method, which gets the decoded request.
  ///
  /// A request whose body does not decode is refused with 400, without calling the handler. Call
  /// this before `start`; it traps afterwards.
  public func route<Request: BodyDecodable, Reply: BodyEncodable>(
    _ method: RPCMethod<Request, Reply>, on placement: HandlerPlacement = .connectionLoop,
    _ handler: @escaping @Sendable (Request, InboundRequest) async throws -> Reply
  ) {
    route(method.type, on: placement) { request in
      try await handler(try request.decoded(as: Request.self), request)
    }
  }
}
