// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// The items that the peer sends in a stream, in order.
///
/// Items are bytes, or messages, which are decoded when you read them. Each item is returned once:
/// all copies of this value take from the same items. One task at a time may read; a second one
/// traps. While you do not read, at most a window of items arrives, and then the peer's writer
/// waits. A task on the connection's loop gets items one by one, other tasks in batches of up to
/// 64.
public struct Items<Item: BodyDecodable & Sendable>: AsyncSequence, AsyncIteratorProtocol, Sendable
{
  @usableFromInline var reader: ItemReader

  init(_ channel: BoundChannel, _ lease: StreamLease? = nil) {
    reader = ItemReader(channel, lease, decodes: Item.self != [UInt8].self)
  }

  /// The same items, which in a handler also end when its connection is about to end: when the
  /// server drains it or shuts down, or when the other side has said that it leaves.
  ///
  ///     for try await report in reports.untilDraining { try store(report) }
  ///     return Receipt(count)
  ///
  /// So the handler of a long stream can respond in time, and `shutDown` need not wait for the
  /// whole of its `within:`. The items that the handler has not read are dropped when it returns.
  /// This has no effect on the items of a request of your own.
  public var untilDraining: Items {
    var items = self
    items.reader.endsWhenDraining = true
    return items
  }

  /// Returns the items themselves.
  public func makeAsyncIterator() -> Items { self }

  /// Returns the next item; nil at the end.
  ///
  /// Throws `deadlineExceeded` if no item comes within `itemTimeout`, and `cancelled` if the task
  /// is cancelled while it waits. After the items that arrived before, it throws the error of the
  /// request if that has failed, such as `connectionLost`, or `rejected` if the peer responded with
  /// a code other than 200. In a handler it throws `closed` once the exchange has ended without its
  /// response; items that the handler has not read are then dropped. An error does not end the
  /// sequence: later calls return further items, or throw again.
  ///
  /// In place of an item that does not decode, it throws `decodingFailed`; the next call returns
  /// the item after it. A handler that throws this error on responds with 400. On a server, the
  /// memory of a decoded item counts until you ask for the next one, or release the items. If
  /// `limits.memoryLimit` leaves no room for an item, it throws `overloaded`; a handler that throws
  /// this on responds with 429.
  ///
  /// The items of an ``ItemStream`` end once the peer has responded with code 200. There, any error
  /// cancels the request, and later calls throw too. The error's `itemsReceived` is the number of
  /// items that you have read, and its `delivery` says whether the request may have run.
  @inlinable
  public mutating func next(
    isolation actor: isolated (any Actor)? = #isolation
  ) async throws(LongLinkError) -> Item? {
    guard let bytes = try await reader.next(isolation: actor) else { return nil }
    // Items that are bytes need no copy.
    if Item.self == [UInt8].self { return unsafe unsafeBitCast(bytes, to: Item.self) }
    return try await reader.decoded(as: Item.self, bytes)
  }

  /// Returns the next item; nil at the end. Throws as `next(isolation:)` does.
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
