// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
@_spi(Loop) internal import LongLinkTransport

/// The items that the peer sends in a stream, in order. They are read once, by one task at a time.
///
/// A reader that stops takes nothing more from the network than its window: the peer's writer then
/// waits. Items come one by one to a task on the connection's loop, and in batches of up to 64
/// elsewhere.
public struct Items: AsyncSequence, Sendable {
  /// The bytes of an item.
  public typealias Element = [UInt8]
  /// Every failure is of this type.
  public typealias Failure = LongLinkError

  private let channel: BoundChannel

  init(_ channel: BoundChannel) {
    self.channel = channel
  }

  /// Makes an iterator. All iterators take from the same items.
  public func makeAsyncIterator() -> Iterator { Iterator(channel) }

  /// The position of a reader.
  public struct Iterator: AsyncIteratorProtocol {
    private let channel: BoundChannel
    /// Items that the loop handed over together, the next one last.
    private var batch: [[UInt8]] = []
    /// The response to the request; nil for a responder's items, and before their end.
    private(set) var response: [UInt8]?
    private var hasEnded = false

    init(_ channel: BoundChannel) {
      self.channel = channel
    }

    /// Returns the next item; nil at the end.
    ///
    /// Throws, behind the items that arrived before it, `rejected` if the peer ended the stream
    /// with an error, the reason why the connection or the exchange ended, `deadlineExceeded` after
    /// `itemTimeout`, and `cancelled` if the task is cancelled.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(LongLinkError) -> [UInt8]? {
      if let item = takeReady() { return item }
      if hasEnded { return nil }
      switch await nextRead(of: channel, upTo: channel.loop.isCurrent ? 1 : 64) {
      case .items(var items):
        if items.count == 1 { return items[0] }
        items.reverse()
        batch = items
        return batch.popLast()
      case .ended(let outcome):
        hasEnded = true
        response = try outcome.get()
        return nil
      }
    }

    /// Returns the next item; nil at the end.
    public mutating func next() async throws(LongLinkError) -> [UInt8]? {
      try await next(isolation: nil)
    }

    /// The error of the item that was returned last; the items before it count as received.
    func undecodable(_ reason: BodyError) async -> LongLinkError {
      let others = UInt64(batch.count) + 1
      return await channel.loop.run { [channel] in
        channel.value.undecodable(reason, others)
      }
    }

    /// The next item, if it is here. Usually it is, and nothing has to wait.
    @inline(__always)
    mutating func takeReady() -> [UInt8]? {
      if !batch.isEmpty { return batch.popLast() }
      return channel.loop.isCurrent && !hasEnded ? channel.value.readOne() : nil
    }
  }
}

extension ItemChannel {
  /// The error of an item that was read and does not decode; of those that were read, `others` do
  /// not count as received.
  fileprivate func undecodable(_ reason: BodyError, _ others: UInt64) -> LongLinkError {
    // Whoever responds with items has run the handler.
    error(.decodingFailed, "\(reason)", delivery: isRequester ? .answered : nil)
      .with(itemsReceived: itemsRead - min(itemsRead, others))
  }
}

/// Waits on the loop for items, or for the end.
private func nextRead(
  of channel: BoundChannel, upTo limit: Int
) async -> ItemChannel.Read {
  let wait = ChannelWait()
  return await withTaskCancellationHandler {
    await suspend { (waiter: Waiter<ItemChannel.Read>) in
      channel.onLoop { channel in
        if let read = channel.read(upTo: limit) { return waiter(read) }
        let id = channel.wait { waiter($0) }
        if !wait.begin(id) { channel.cancelRead(id) }
      }
    }
  } onCancel: {
    if let id = wait.cancel() {
      channel.loop.execute { channel.value.cancelRead(id) }
    }
  }
}
