// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore

extension LongLinkServer {
  /// Sets a synchronous handler for a message type. It traps once the server has started.
  ///
  /// It runs on the connection's loop and must not block. What it returns is the body of a 200; it
  /// throws `Rejection` to answer with another code, and any other error is answered with 500.
  public func route(
    _ type: MessageType,
    _ handler: @escaping @Sendable (InboundRequest) throws -> any BodyEncodable & Sendable
  ) {
    setRoute(type, .inline(handler))
  }

  /// Sets an asynchronous handler for a message type. It traps once the server has started.
  ///
  /// It runs in a task on the connection's loop unless told otherwise. The task is cancelled when
  /// the client cancels or goes, and when the request's deadline passes.
  public func route(
    _ type: MessageType, on placement: HandlerPlacement = .connectionLoop,
    _ handler: @escaping @Sendable (InboundRequest) async throws -> any BodyEncodable & Sendable
  ) {
    setRoute(type, .task(placement, handler))
  }

  /// Sets a synchronous handler of a method, which is given the request as a message.
  ///
  /// A body that is no such message is refused with 400, without calling the handler. It traps once
  /// the server has started.
  public func route<Request: BodyDecodable, Reply: BodyEncodable>(
    _ method: RPCMethod<Request, Reply>,
    _ handler: @escaping @Sendable (Request, InboundRequest) throws -> Reply
  ) {
    route(method.type) { request in
      try handler(try request.decoded(as: Request.self), request)
    }
  }

  /// Sets an asynchronous handler of a method, which is given the request as a message.
  ///
  /// A body that is no such message is refused with 400, without calling the handler. It traps once
  /// the server has started.
  public func route<Request: BodyDecodable, Reply: BodyEncodable>(
    _ method: RPCMethod<Request, Reply>, on placement: HandlerPlacement = .connectionLoop,
    _ handler: @escaping @Sendable (Request, InboundRequest) async throws -> Reply
  ) {
    route(method.type, on: placement) { request in
      try await handler(try request.decoded(as: Request.self), request)
    }
  }
}
