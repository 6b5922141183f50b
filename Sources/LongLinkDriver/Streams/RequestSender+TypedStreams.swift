// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

extension RequestSender {
  /// Returns the decoded items of a response as a sequence, which sends the request when it is
  /// iterated.
  ///
  ///     for try await price in client.stream(ShopMethods.watch, article) { show(price) }
  ///
  /// An item that does not decode cancels the request and throws `decodingFailed`. Otherwise
  /// iterating throws as it does for the form that takes a message type.
  public func stream<Request: BodyEncodable, Item: BodyDecodable>(
    _ method: RPCMethod<Request, Streamed<Item>>, _ request: Request,
    options: StreamOptions = StreamOptions()
  ) -> TypedItemStream<Item> {
    TypedItemStream(stream(method.type, request, options: options.over(method.options)))
  }

  /// Sends a request with items of yours, and returns the decoded reply.
  ///
  /// Your items end when `work` returns. Throws `decodingFailed`, delivery `answered`, if the
  /// response does not decode as the reply, and otherwise as the form that takes a message type.
  public func sendItems<Item: BodyEncodable, Reply: BodyDecodable>(
    _ method: RPCMethod<Streamed<Item>, Reply>, options: StreamOptions = StreamOptions(),
    _ work: (TypedItemWriter<Item>) async throws -> Void
  ) async throws -> Reply {
    let bytes = try await sendItems(method.type, EmptyBody(), options: options.over(method.options))
    { writer in
      try await work(TypedItemWriter(writer))
    }
    return try RPCMethod<EmptyBody, Reply>(method.type).reply(of: bytes)
  }

  /// Sends a request with items in both directions.
  ///
  /// When `work` returns, your items end, and the peer's that you have not read are dropped. If it
  /// throws, because an item does not decode for instance, the request is cancelled and the error
  /// is thrown on. Otherwise it throws as the form that takes a message type.
  public func exchange<RequestItem: BodyEncodable, ResponseItem: BodyDecodable>(
    _ method: RPCMethod<Streamed<RequestItem>, Streamed<ResponseItem>>,
    options: StreamOptions = StreamOptions(),
    _ work: (TypedItems<ResponseItem>, TypedItemWriter<RequestItem>) async throws -> Void
  ) async throws {
    _ = try await exchange(method.type, EmptyBody(), options: options.over(method.options)) {
      items, writer in
      try await work(TypedItems(items), TypedItemWriter(writer))
    }
  }
}
