// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

// The handlers of routes, made of handlers that get and send messages.

extension ServerStreamingMethod where Request: BodyDecodable, Item: BodyEncodable {
  /// Decodes the request for a handler, and encodes its items.
  package static func handler(
    _ handle:
      @escaping @Sendable (Request, InboundRequest, TypedItemWriter<Item>) async throws -> Void
  ) -> StreamRoute.Handler {
    { request, _, writer in
      var lease: DecodedLease?
      defer { withExtendedLifetime(lease) {} }
      let message = try request.decoded(as: Request.self, lease: &lease)
      try await handle(message, request, TypedItemWriter(writer))
      return EmptyBody()
    }
  }
}

extension ClientStreamingMethod where Item: BodyDecodable, Reply: BodyEncodable {
  /// Decodes the items for a handler.
  package static func handler(
    _ handle: @escaping @Sendable (InboundRequest, TypedItems<Item>) async throws -> Reply
  ) -> StreamRoute.Handler {
    { request, items, _ in try await handle(request, TypedItems(items)) }
  }
}

extension BidirectionalMethod where RequestItem: BodyDecodable, ResponseItem: BodyEncodable {
  /// Decodes the items for a handler, and encodes its own.
  package static func handler(
    _ handle:
      @escaping @Sendable (
        InboundRequest, TypedItems<RequestItem>, TypedItemWriter<ResponseItem>
      ) async throws -> Void
  ) -> StreamRoute.Handler {
    { request, items, writer in
      try await handle(request, TypedItems(items), TypedItemWriter(writer))
      return EmptyBody()
    }
  }
}
