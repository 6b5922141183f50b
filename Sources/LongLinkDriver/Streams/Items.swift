// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// The items that the peer sends in a stream, in order. They are read once, by one task at a time.
///
/// They are bytes, or messages that are decoded when they are taken. While a reader does not read,
/// at most a window of items arrives, and then the peer's writer waits. A task on the connection's
/// loop gets items one by one, other tasks in batches of up to 64. All copies take from the same
/// items.
public struct Items<Item: BodyDecodable & Sendable>: AsyncSequence, AsyncIteratorProtocol, Sendable
{
  @usableFromInline var reader: ItemReader

  init(_ channel: BoundChannel, _ lease: StreamLease? = nil) {
    reader = ItemReader(channel, lease, decodes: Item.self != [UInt8].self)
  }

  /// The same items; in a handler, they also end when its connection is being left. That is when
  /// the server drains it or shuts down, or when the other side has said that it leaves.
  ///
  ///     for try await report in reports.untilDraining { try store(report) }
  ///     return Receipt(count)
  ///
  /// So the handler of a long stream can respond in time, and `shutDown` need not wait until its
  /// bound has passed. The items that the handler has not read are dropped when it returns. The
  /// items of a request of your own do not end in this way.
  public var untilDraining: Items {
    var items = self
    items.reader.endsWhenDraining = true
    return items
  }

  /// Returns the items themselves.
  public func makeAsyncIterator() -> Items { self }

  /// Returns the next item; nil at the end.
  ///
  /// Throws, after the items that arrived before it, `rejected` if the peer ended the stream
  /// with an error, the reason why the connection or the exchange ended, `deadlineExceeded` after
  /// `itemTimeout`, and `cancelled` if the task is cancelled. If the exchange of a handler ends
  /// before its response, the items that it has not read are dropped. An error is not the end:
  /// later calls return what still comes, or throw again.
  ///
  /// In place of an item that does not decode, it throws `decodingFailed`; the next call returns
  /// the item after it. A handler that lets this error through responds with 400. On a server, the
  /// memory of an item counts until the next item is asked for, or the items are released. If
  /// `limits.memoryLimit` leaves no room for an item, it throws `overloaded`; a handler that lets
  /// this through responds with 429.
  ///
  /// The items of an ``ItemStream`` end once the peer has responded with code 200. An error cancels
  /// the request; its `itemsReceived` is the number of items that you have read, and its `delivery`
  /// says whether the request may have run. Later calls throw too.
  @inlinable
  public mutating func next(
    isolation actor: isolated (any Actor)? = #isolation
  ) async throws(LongLinkError) -> Item? {
    guard let bytes = try await reader.next(isolation: actor) else { return nil }
    // Items that are bytes need no copy.
    if Item.self == [UInt8].self { return unsafe unsafeBitCast(bytes, to: Item.self) }
    return try await reader.decoded(as: Item.self, bytes)
  }

  /// Returns the next item; nil at the end.
  @inlinable
  public mutating func next() async throws(LongLinkError) -> Item? {
    try await next(isolation: nil)
  }
}

extension ItemReader {
  /// Decodes the item that was returned last.
  @usableFromInline
  mutating func decoded<Item: BodyDecodable>(
    as type: Item.Type, _ bytes: [UInt8]
  ) async throws(LongLinkError) -> Item {
    do throws(BodyError) {
      guard let memory else { return try Item(copying: bytes) }
      return try memory.decode(type, from: bytes)
    } catch {
      throw await undecodable(error)
    }
  }
}
