// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore

extension LongLinkClient {
  /// Sets the handler of the server's requests of a method, for connections made after this call.
  /// It replaces an earlier handler of the method's type.
  ///
  /// The handler gets the decoded request, and returns the reply. It runs in a task, by default on
  /// the client's loop, which it must not block. The task is cancelled when the server cancels, the
  /// connection ends, or the deadline passes. A request whose body does not decode is refused with
  /// 400, without calling the handler.
  public func onRequest<Request: BodyDecodable, Reply: BodyEncodable>(
    _ method: RPCMethod<Request, Reply>, on placement: HandlerPlacement = .connectionLoop,
    _ handler: @escaping @Sendable (Request, InboundRequest) async throws -> Reply
  ) {
    router.set(
      method.type, named: method.fullName.text,
      .task(placement) { request in
        var lease: DecodedLease?
        defer { withExtendedLifetime(lease) {} }
        let message = try request.decoded(as: Request.self, lease: &lease)
        return try await handler(message, request)
      })
  }

  /// Sets the handler of a method whose response has items, for connections made after this call.
  /// It replaces an earlier handler of the method's type.
  ///
  /// The handler gets the decoded request, and writes the items. It runs in a task, by default on
  /// the client's loop, which it must not block. The task is cancelled when the server cancels, the
  /// connection ends, or the deadline passes. A request whose body does not decode is refused with
  /// 400, without calling the handler. If a wait for the server to take an item lasts longer than
  /// `itemTimeout` (default: no limit), writing throws `deadlineExceeded`; a handler that throws
  /// this on responds with 408.
  public func onStreamRequest<Request: BodyDecodable, Item: BodyEncodable>(
    _ method: RPCMethod<Request, Streamed<Item>>,
    on placement: HandlerPlacement = .connectionLoop, itemTimeout: Duration? = nil,
    _ handler:
      @escaping @Sendable (Request, InboundRequest, ItemWriter<Item>) async throws -> Void
  ) {
    router.set(
      method.type, named: method.fullName.text,
      .stream(StreamRoute(method, on: placement, itemTimeout: itemTimeout, handler)))
  }

  /// Sets the handler of a method whose request has items, for connections made after this call.
  /// It replaces an earlier handler of the method's type.
  ///
  /// The handler reads the decoded items, and returns the reply. It runs in a task, by default on
  /// the client's loop, which it must not block. The task is cancelled when the server cancels, the
  /// connection ends, or the deadline passes. In place of an item that does not decode, reading
  /// throws `decodingFailed`; a handler that throws this on responds with 400. If a wait for an
  /// item lasts longer than `itemTimeout` (default: no limit), reading throws `deadlineExceeded`; a
  /// handler that throws this on responds with 408.
  public func onStreamRequest<Item: BodyDecodable, Reply: BodyEncodable>(
    _ method: RPCMethod<Streamed<Item>, Reply>,
    on placement: HandlerPlacement = .connectionLoop, itemTimeout: Duration? = nil,
    _ handler: @escaping @Sendable (InboundRequest, Items<Item>) async throws -> Reply
  ) {
    router.set(
      method.type, named: method.fullName.text,
      .stream(StreamRoute(method, on: placement, itemTimeout: itemTimeout, handler)))
  }

  /// Sets the handler of a method with items in both directions, for connections made after this
  /// call. It replaces an earlier handler of the method's type.
  ///
  /// The handler reads the server's decoded items, and writes its own. It runs in a task, by
  /// default on the client's loop, which it must not block. The task is cancelled when the server
  /// cancels, the connection ends, or the deadline passes. In place of an item that does not
  /// decode, reading throws `decodingFailed`; a handler that throws this on responds with 400,
  /// after the items that were written. If a wait for an item, or for the server to take one, lasts
  /// longer than `itemTimeout` (default: no limit), reading or writing throws `deadlineExceeded`; a
  /// handler that throws this on responds with 408.
  public func onStreamRequest<RequestItem: BodyDecodable, ResponseItem: BodyEncodable>(
    _ method: RPCMethod<Streamed<RequestItem>, Streamed<ResponseItem>>,
    on placement: HandlerPlacement = .connectionLoop, itemTimeout: Duration? = nil,
    _ handler:
      @escaping @Sendable (
        InboundRequest, Items<RequestItem>, ItemWriter<ResponseItem>
      ) async throws -> Void
  ) {
    router.set(
      method.type, named: method.fullName.text,
      .stream(StreamRoute(method, on: placement, itemTimeout: itemTimeout, handler)))
  }
}
