// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

// Routes of methods with items, made of handlers that get and send messages.

extension StreamRoute {
  /// Decodes the request for a handler, and encodes its items.
  package init<Request: BodyDecodable, Item: BodyEncodable>(
    _ method: RPCMethod<Request, Streamed<Item>>, on placement: HandlerPlacement,
    itemTimeout: Duration?,
    _ handle:
      @escaping @Sendable (Request, InboundRequest, TypedItemWriter<Item>) async throws -> Void
  ) {
    self.init(.responseItems, on: placement, itemTimeout: itemTimeout) { request, _, writer in
      var lease: DecodedLease?
      defer { withExtendedLifetime(lease) {} }
      let message = try request.decoded(as: Request.self, lease: &lease)
      try await handle(message, request, TypedItemWriter(writer))
      return EmptyBody()
    }
  }

  /// Decodes the items for a handler.
  package init<Item: BodyDecodable, Reply: BodyEncodable>(
    _ method: RPCMethod<Streamed<Item>, Reply>, on placement: HandlerPlacement,
    itemTimeout: Duration?,
    _ handle: @escaping @Sendable (InboundRequest, TypedItems<Item>) async throws -> Reply
  ) {
    self.init(.requestItems, on: placement, itemTimeout: itemTimeout) { request, items, _ in
      try await handle(request, TypedItems(items))
    }
  }

  /// Decodes the items for a handler, and encodes its own.
  package init<RequestItem: BodyDecodable, ResponseItem: BodyEncodable>(
    _ method: RPCMethod<Streamed<RequestItem>, Streamed<ResponseItem>>,
    on placement: HandlerPlacement, itemTimeout: Duration?,
    _ handle:
      @escaping @Sendable (
        InboundRequest, TypedItems<RequestItem>, TypedItemWriter<ResponseItem>
      ) async throws -> Void
  ) {
    self.init([.requestItems, .responseItems], on: placement, itemTimeout: itemTimeout) {
      request, items, writer in
      try await handle(request, TypedItems(items), TypedItemWriter(writer))
      return EmptyBody()
    }
  }
}
