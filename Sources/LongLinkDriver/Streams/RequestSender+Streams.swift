// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
@_spi(Loop) internal import LongLinkTransport

extension RequestSender {
  /// Returns the items of a response as a sequence, which sends the request when it is iterated.
  ///
  ///     for try await item in client.stream(7, query) { show(item) }
  ///
  /// Without a connection the request waits, as the options say. Iterating throws as
  /// `Items.next(isolation:)` does; also `unsupported`, delivery `notSent`, if the peer or the
  /// dialect has no streams, and `overloaded` if the windows of all streams on the connection would
  /// exceed `limits.streamWindows.total`.
  public func stream(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: StreamOptions = StreamOptions()
  ) -> ItemStream<[UInt8]> {
    ItemStream(
      StreamRequest(type, RequestBody(body), .responseItems, options, on: port))
  }

  /// Sends a request with your items, and returns the body of the response.
  ///
  /// Your items end when `work` returns. If it throws, the request is cancelled and the error is
  /// thrown on. If the peer responds before the items have ended, `write` throws `streamEnded`; if
  /// `work` throws that error on, the peer's response is returned. Throws a `LongLinkError` if the
  /// request fails: `rejected`, for instance, for a response with a code other than 200.
  public func sendItems(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: StreamOptions = StreamOptions(),
    _ work: (ItemWriter<[UInt8]>) async throws -> Void
  ) async throws -> [UInt8] {
    let request = StreamRequest(type, RequestBody(body), .requestItems, options, on: port)
    return try await run(request) { channel in try await work(ItemWriter(channel)) }
  }

  /// Sends a request with items in both directions, and returns the body of the response.
  ///
  /// When `work` returns, your items end, and the peer's items that you have not read are dropped.
  /// If it throws, the request is cancelled and the error is thrown on. If the peer responds before
  /// your items have ended, `write` throws `streamEnded`; if `work` throws that error on, the
  /// peer's response is returned. Throws a `LongLinkError` if the request fails. Short links carry
  /// no exchange: over them it fails with `unsupported`.
  ///
  /// Unless the peer reads everything before it writes, read and write in separate tasks: two sides
  /// that only write would wait for each other for ever.
  public func exchange(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: StreamOptions = StreamOptions(),
    _ work: (Items<[UInt8]>, ItemWriter<[UInt8]>) async throws -> Void
  ) async throws -> [UInt8] {
    let request = StreamRequest(
      type, RequestBody(body), [.requestItems, .responseItems], options, on: port)
    return try await run(request) { try await work(Items($0), ItemWriter($0)) }
  }
}

// MARK: - Messages

extension RequestSender {
  /// Returns the decoded items of a response as a sequence, which sends the request when it is
  /// iterated.
  ///
  ///     for try await price in client.stream(ShopMethods.watch, article) { show(price) }
  ///
  /// The method's options apply where `options` has none. Iterating throws as it does for the form
  /// that takes a message type.
  public func stream<Request: BodyEncodable, Item: BodyDecodable>(
    _ method: RPCMethod<Request, Streamed<Item>>, _ request: Request,
    options: StreamOptions = StreamOptions()
  ) -> ItemStream<Item> {
    ItemStream(
      StreamRequest(
        method.type, RequestBody(request), .responseItems, options.over(method.options),
        of: method.fullName, on: port))
  }

  /// Sends a request with your items, and returns the decoded reply.
  ///
  /// Your items end when `work` returns. The method's options apply where `options` has none.
  /// Throws `decodingFailed`, delivery `answered`, if the response does not decode as the reply,
  /// and otherwise as the form that takes a message type.
  public func sendItems<Item: BodyEncodable, Reply: BodyDecodable>(
    _ method: RPCMethod<Streamed<Item>, Reply>, options: StreamOptions = StreamOptions(),
    _ work: (ItemWriter<Item>) async throws -> Void
  ) async throws -> Reply {
    let request = StreamRequest(
      method.type, .bytes([]), .requestItems, options.over(method.options), of: method.fullName,
      on: port)
    let bytes = try await run(request) { channel in try await work(ItemWriter(channel)) }
    do throws(LongLinkError) {
      return try Reply(of: bytes, method.type)
    } catch {
      throw error.of(method.fullName)
    }
  }

  /// Sends a request with items in both directions, and returns when the peer has responded.
  ///
  /// When `work` returns, your items end, and the peer's items that you have not read are dropped.
  /// If it throws, for instance because an item does not decode, the request is cancelled and the
  /// error is thrown on. If the peer responds before your items have ended, `write` throws
  /// `streamEnded`; if `work` throws that error on, this returns as usual. Throws a `LongLinkError`
  /// if the request fails. The method's options apply where `options` has none.
  ///
  /// Unless the peer reads everything before it writes, read and write in separate tasks: two sides
  /// that only write would wait for each other for ever.
  public func exchange<RequestItem: BodyEncodable, ResponseItem: BodyDecodable>(
    _ method: RPCMethod<Streamed<RequestItem>, Streamed<ResponseItem>>,
    options: StreamOptions = StreamOptions(),
    _ work: (Items<ResponseItem>, ItemWriter<RequestItem>) async throws -> Void
  ) async throws {
    let request = StreamRequest(
      method.type, .bytes([]), [.requestItems, .responseItems], options.over(method.options),
      of: method.fullName, on: port)
    _ = try await run(request) { try await work(Items($0), ItemWriter($0)) }
  }
}

// MARK: - Both

extension RequestSender {

  private func run(
    _ request: StreamRequest, _ work: (BoundChannel) async throws -> Void
  ) async throws -> [UInt8] {
    let channel = request.channel
    let lease = StreamLease(RequestHandle(request))
    do {
      try await work(channel)
    } catch let error as LongLinkError where error.isOf(stream: request.number) {
      if error.code == .streamEnded,
        let outcome = await channel.loop.run({ channel.value.outcome })
      {
        // The response says what has happened to the items.
        lease.end()
        return try outcome.get()
      }
      lease.cancel()
      throw await channel.settled(error)
    }
    let outcome: Outcome = await withTaskCancellationHandler {
      await suspend { (waiter: Waiter<Outcome>) in
        channel.onLoop { channel in
          channel.endItems()
          channel.discardItems()
          channel.whenEnded { waiter($0) }
        }
      }
    } onCancel: {
      lease.cancel()
    }
    lease.end()
    return try outcome.get()
  }
}
