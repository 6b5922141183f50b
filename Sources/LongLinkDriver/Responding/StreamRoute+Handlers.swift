// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

// Routes made of handlers that read and write items, as bytes or as messages.

extension StreamRoute {
  package init(
    _ shape: StreamShape, on placement: HandlerPlacement, itemTimeout: Duration?,
    _ handle:
      @escaping @Sendable (InboundRequest, Items<[UInt8]>, ItemWriter<[UInt8]>) async throws
      -> AnyBody
  ) {
    self.init(shape, on: placement, itemTimeout: itemTimeout) { request, channel in
      try await handle(request, Items(channel), ItemWriter(channel))
    }
  }

  /// Makes a route that decodes the request for a handler, and encodes the handler's items.
  package init<Request: BodyDecodable, Item: BodyEncodable>(
    _ method: RPCMethod<Request, Streamed<Item>>, on placement: HandlerPlacement,
    itemTimeout: Duration?,
    _ handle:
      @escaping @Sendable (Request, InboundRequest, ItemWriter<Item>) async throws -> Void
  ) {
    self.init(.responseItems, on: placement, itemTimeout: itemTimeout) { request, channel in
      var lease: DecodedLease?
      defer { withExtendedLifetime(lease) {} }
      let message = try request.decoded(as: Request.self, lease: &lease)
      try await handle(message, request, ItemWriter(channel))
      return EmptyBody()
    }
  }

  /// Makes a route that decodes the caller's items for a handler.
  package init<Item: BodyDecodable, Reply: BodyEncodable>(
    _ method: RPCMethod<Streamed<Item>, Reply>, on placement: HandlerPlacement,
    itemTimeout: Duration?,
    _ handle: @escaping @Sendable (InboundRequest, Items<Item>) async throws -> Reply
  ) {
    self.init(.requestItems, on: placement, itemTimeout: itemTimeout) { request, channel in
      try await handle(request, Items(channel))
    }
  }

  /// Makes a route that decodes the caller's items for a handler, and encodes the handler's items.
  package init<RequestItem: BodyDecodable, ResponseItem: BodyEncodable>(
    _ method: RPCMethod<Streamed<RequestItem>, Streamed<ResponseItem>>,
    on placement: HandlerPlacement, itemTimeout: Duration?,
    _ handle:
      @escaping @Sendable (
        InboundRequest, Items<RequestItem>, ItemWriter<ResponseItem>
      ) async throws -> Void
  ) {
    self.init([.requestItems, .responseItems], on: placement, itemTimeout: itemTimeout) {
      request, channel in
      try await handle(request, Items(channel), ItemWriter(channel))
      return EmptyBody()
    }
  }
}
