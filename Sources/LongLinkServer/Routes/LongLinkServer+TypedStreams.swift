// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore

extension LongLinkServer {
  /// Sets the handler of a method whose response has items. The handler gets the decoded request.
  ///
  /// A request whose body does not decode is refused with 400, without calling the handler.
  /// Otherwise like the form that takes a message type and a shape. Call this before `start`; it
  /// traps afterwards.
  public func routeStream<Request: BodyDecodable, Item: BodyEncodable>(
    _ method: RPCMethod<Request, Streamed<Item>>,
    on placement: HandlerPlacement = .connectionLoop, itemTimeout: Duration? = nil,
    requires rule: AccessRule? = nil, fileID: StaticString = #fileID, line: UInt = #line,
    _ handler:
      @escaping @Sendable (Request, InboundRequest, ItemWriter<Item>) async throws -> Void
  ) {
    setRoute(
      method.type, named: method.fullName.text, requires: rule, at: SourcePlace(fileID, line),
      .stream(StreamRoute(method, on: placement, itemTimeout: itemTimeout, handler)))
  }

  /// Sets the handler of a method whose request has items. The handler reads them decoded.
  ///
  /// In place of an item that does not decode, reading throws `decodingFailed`. A handler that
  /// throws this error on responds with 400. Otherwise like the form that takes a message type and
  /// a shape. Call this before `start`; it traps afterwards.
  public func routeStream<Item: BodyDecodable, Reply: BodyEncodable>(
    _ method: RPCMethod<Streamed<Item>, Reply>,
    on placement: HandlerPlacement = .connectionLoop, itemTimeout: Duration? = nil,
    requires rule: AccessRule? = nil, fileID: StaticString = #fileID, line: UInt = #line,
    _ handler: @escaping @Sendable (InboundRequest, Items<Item>) async throws -> Reply
  ) {
    setRoute(
      method.type, named: method.fullName.text, requires: rule, at: SourcePlace(fileID, line),
      .stream(StreamRoute(method, on: placement, itemTimeout: itemTimeout, handler)))
  }

  /// Sets the handler of a method with items in both directions. The handler reads them decoded.
  ///
  /// In place of an item that does not decode, reading throws `decodingFailed`. A handler that
  /// throws this error on responds with 400, after the items that it has written. Otherwise like
  /// the form that takes a message type and a shape. Call this before `start`; it traps afterwards.
  public func routeStream<RequestItem: BodyDecodable, ResponseItem: BodyEncodable>(
    _ method: RPCMethod<Streamed<RequestItem>, Streamed<ResponseItem>>,
    on placement: HandlerPlacement = .connectionLoop, itemTimeout: Duration? = nil,
    requires rule: AccessRule? = nil, fileID: StaticString = #fileID, line: UInt = #line,
    _ handler:
      @escaping @Sendable (
        InboundRequest, Items<RequestItem>, ItemWriter<ResponseItem>
      ) async throws -> Void
  ) {
    setRoute(
      method.type, named: method.fullName.text, requires: rule, at: SourcePlace(fileID, line),
      .stream(StreamRoute(method, on: placement, itemTimeout: itemTimeout, handler)))
  }
}
