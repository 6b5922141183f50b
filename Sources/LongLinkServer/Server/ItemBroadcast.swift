// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
public import LongLinkDriver

/// Sends the same items to any number of streams: to each stream whose handler calls `send(to:)`.
///
///     let prices = ItemBroadcast(.dropOldest(64))
///     server.routeStream(7, .responseItems) { _, _, writer in
///       try await prices.send(to: writer)
///       return []
///     }
///     try prices.publish(quote)
///
/// An item is encoded once. Each subscriber has a buffer, whose policy decides what happens to one
/// that is slower than the items. You can use a broadcast from any thread.
public final class ItemBroadcast: Sendable {
  private struct Item: Broadcastable {
    let bytes: [UInt8]

    var bufferedBytes: Int { bytes.count }
    static var plural: String { "items" }
  }

  private let list = BroadcastList<Int, Item>()
  private let subscribe: @Sendable (BroadcastList<Int, Item>) -> BroadcastSubscription<Item>

  /// Makes a broadcast whose buffers drop items when they are full.
  public init(_ buffer: PushBuffer<Never>) {
    subscribe = { $0.subscription(to: nil, buffer) }
  }

  /// Makes a broadcast that ends the streams whose buffers are full: after the items that are
  /// buffered, with code 429.
  public init(_ buffer: PushBuffer<LongLinkError>) {
    subscribe = { $0.subscription(to: nil, buffer) }
  }

  /// Sends the items that are published from now on to a stream, until `finish` is called.
  ///
  /// Throws a `Rejection` with 429 if the stream was too slow for a buffer that closes, and
  /// otherwise as `ItemWriter.write` does.
  public func send<Message>(to writer: ItemWriter<Message>) async throws {
    let subscription = subscribe(list)
    while true {
      switch await subscription.box.next() {
      case .element(let item):
        try await writer.write(encoded: item.bytes)
      case .end:
        try Task.checkCancellation()
        return
      case .overflow(let error):
        throw Rejection(.overloaded, error.detail)
      }
    }
  }

  /// Gives every subscriber an item, without waiting for any. Throws `BodyError` if the item has no
  /// encoding.
  public func publish(_ item: some BodyEncodable) throws(BodyError) {
    list.publish(Item(bytes: try item.encodedBytes()), for: 0)
  }

  /// Ends all streams, after the items that are buffered: `send(to:)` returns.
  public func finish() { list.close() }

  /// The streams that get the items now.
  public var subscribers: Int { list.subscriberCount }
  /// Items that a full buffer dropped, since the broadcast was made.
  public var dropped: UInt64 { list.counts.dropped }
  /// Streams that ended with 429 because their buffers were full, since the broadcast was made.
  public var closed: UInt64 { list.counts.closed }
}
