// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
@_spi(Loop) internal import LongLinkTransport

extension RequestSender {
  /// Returns the items of a response as a sequence, which sends the request when it is iterated.
  ///
  ///     for try await item in client.stream(7, query) { show(item) }
  ///
  /// Without a connection the request waits, as the options say. Iterating throws `unsupported`,
  /// delivery `notSent`, if the peer or the dialect has no streams, and `overloaded` if the windows
  /// of all streams on the connection would exceed its limit.
  public func stream(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: StreamOptions = StreamOptions()
  ) -> ItemStream {
    let request = StreamRequest(type, RequestBody(body), .responseItems, options, on: loop)
    return ItemStream(request) { start($0) }
  }

  /// Sends a request with items of yours, and returns the body of the response.
  ///
  /// Your items end when `work` returns. If it throws, the request is cancelled and the error is
  /// thrown on. If the peer responds before the items have ended, `write` throws `streamEnded`; if
  /// `work` throws that error on, its response is returned.
  public func sendItems(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: StreamOptions = StreamOptions(),
    _ work: (ItemWriter) async throws -> Void
  ) async throws -> [UInt8] {
    let request = StreamRequest(type, RequestBody(body), .requestItems, options, on: loop)
    return try await run(request) { _, writer in try await work(writer) }
  }

  /// Sends a request with items in both directions, and returns the body of the response.
  ///
  /// When `work` returns, your items end, and the peer's that you have not read are dropped. If it
  /// throws, the request is cancelled and the error is thrown on. Read and write in tasks of their
  /// own if the peer does not read all before it writes: a side that only writes waits for one that
  /// only writes.
  public func exchange(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: StreamOptions = StreamOptions(),
    _ work: (Items, ItemWriter) async throws -> Void
  ) async throws -> [UInt8] {
    let request = StreamRequest(
      type, RequestBody(body), [.requestItems, .responseItems], options, on: loop)
    return try await run(request, work)
  }

  private func run(
    _ request: StreamRequest, _ work: (Items, ItemWriter) async throws -> Void
  ) async throws -> [UInt8] {
    let channel = request.channel
    let lease = StreamLease(start(request))
    do {
      try await work(Items(channel), ItemWriter(channel))
    } catch let error as LongLinkError where error.isOf(stream: request.number) {
      if error.code == .streamEnded,
        let outcome = await channel.loop.run({ channel.value.outcome })
      {
        // The response says what happened to the items.
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
