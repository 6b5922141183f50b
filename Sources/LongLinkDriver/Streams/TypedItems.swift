// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// The items that the peer sends in a stream, decoded as messages. They are read once, by one task
/// at a time.
public struct TypedItems<Item: BodyDecodable & Sendable>: AsyncSequence, Sendable {
  /// A decoded item.
  public typealias Element = Item
  /// The type of every error that reading throws.
  public typealias Failure = LongLinkError

  private let items: Items
  private let memory: ItemMemory?

  /// Decodes the given items.
  public init(_ items: Items) {
    self.items = items
    memory = items.decoded.map { ItemMemory(in: $0) }
  }

  /// Makes an iterator. All iterators take from the same items.
  public func makeAsyncIterator() -> Iterator {
    Iterator(items: items.makeAsyncIterator(), memory: memory)
  }

  /// The position of a reader.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate var items: Items.Iterator
    fileprivate let memory: ItemMemory?

    /// Returns the next item; nil at the end.
    ///
    /// Throws as the iterator of ``Items`` does, and `decodingFailed` in place of an item that does
    /// not decode; the next call returns the one after it. A handler that throws that error on
    /// responds with 400. On a server, what an item takes counts until the next one is asked for,
    /// or the items are released. It throws `overloaded` in place of an item for which
    /// `memoryLimit` leaves no room; thrown on, that responds with 429.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(LongLinkError) -> Item? {
      memory?.release()
      guard let bytes = try await items.next(isolation: actor) else { return nil }
      do throws(BodyError) {
        guard let memory else { return try Item(copying: bytes) }
        return try memory.decode(Item.self, from: bytes)
      } catch {
        throw await items.undecodable(error)
      }
    }

    /// Returns the next item; nil at the end.
    public mutating func next() async throws(LongLinkError) -> Item? {
      try await next(isolation: nil)
    }
  }
}

/// The items of a response, decoded as messages and read while they arrive.
///
/// The request is sent when you begin to iterate, which you can do once. If you leave the loop
/// before the end, the request is cancelled.
public struct TypedItemStream<Item: BodyDecodable & Sendable>: AsyncSequence, Sendable {
  /// A decoded item.
  public typealias Element = Item
  /// The type of every error that reading throws.
  public typealias Failure = LongLinkError

  private let items: ItemStream

  init(_ items: ItemStream) {
    self.items = items
  }

  /// Sends the request. Call it once.
  public func makeAsyncIterator() -> Iterator { Iterator(items: items.makeAsyncIterator()) }

  /// The position of the reader. When it is released before the end, the request is cancelled.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate var items: ItemStream.Iterator
    private var failure: LongLinkError?

    fileprivate init(items: ItemStream.Iterator) {
      self.items = items
    }

    /// Returns the next item; nil once the peer has responded with code 200.
    ///
    /// Throws as the iterator of ``ItemStream`` does. An item that does not decode cancels the
    /// request and throws `decodingFailed`, delivery `answered`; the error's `itemsReceived` is the
    /// number of items before it. Later calls throw the same error.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(LongLinkError) -> Item? {
      if let failure { throw failure }
      guard let bytes = try await items.next(isolation: actor) else { return nil }
      do throws(BodyError) {
        return try Item(copying: bytes)
      } catch {
        let failure = await items.cancel(undecodable: error)
        self.failure = failure
        throw failure
      }
    }

    /// Returns the next item; nil once the peer has responded with code 200.
    public mutating func next() async throws(LongLinkError) -> Item? {
      try await next(isolation: nil)
    }
  }
}
