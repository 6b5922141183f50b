// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
@_spi(Loop) internal import LongLinkTransport
internal import Synchronization

/// The items that the peer sends in a stream, in order. They are read once, by one task at a time.
///
/// A reader that stops takes nothing more from the network than its window: the peer's writer then
/// waits. Items come one by one to a task on the connection's loop, and in batches of up to 64
/// elsewhere.
public struct Items: AsyncSequence, Sendable {
  /// The bytes of an item.
  public typealias Element = [UInt8]
  /// The type of every error that reading throws.
  public typealias Failure = LongLinkError

  private let channel: BoundChannel
  private let batch = ItemBatch()

  init(_ channel: BoundChannel) {
    self.channel = channel
  }

  /// Where decoded items are counted; nil for none.
  var decoded: DecodedMemory? { channel.decoded }

  /// Makes an iterator. All iterators take from the same items.
  public func makeAsyncIterator() -> Iterator { Iterator(channel, batch) }

  /// The position of a reader.
  public struct Iterator: AsyncIteratorProtocol {
    private let channel: BoundChannel
    private let batch: ItemBatch
    /// The response to the request; nil for a responder's items, and before their end.
    private(set) var response: [UInt8]?
    private var hasEnded = false

    fileprivate init(_ channel: BoundChannel, _ batch: ItemBatch) {
      self.channel = channel
      self.batch = batch
    }

    /// Returns the next item; nil at the end.
    ///
    /// Throws, after the items that arrived before it, `rejected` if the peer ended the stream
    /// with an error, the reason why the connection or the exchange ended, `deadlineExceeded` after
    /// `itemTimeout`, and `cancelled` if the task is cancelled. If the exchange of a handler ends
    /// before its response, the items that it has not read are dropped. An error is not the end:
    /// later calls return what still comes, or throw again.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(LongLinkError) -> [UInt8]? {
      if let item = takeReady() { return item }
      if hasEnded { return nil }
      switch await nextRead(of: channel, upTo: channel.loop.isCurrent ? 1 : 64) {
      case .items(var items):
        if items.count == 1 { return items[0] }
        items.reverse()
        let item = items.removeLast()
        batch.put(items)
        return item
      case .ended(let outcome):
        // After an error, also one of this read alone, there is no end to report.
        response = try outcome.get()
        hasEnded = true
        return nil
      }
    }

    /// Returns the next item; nil at the end.
    public mutating func next() async throws(LongLinkError) -> [UInt8]? {
      try await next(isolation: nil)
    }

    /// An error of the stream whose request was cancelled because of it.
    func settled(_ error: LongLinkError) async -> LongLinkError { await channel.settled(error) }

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
      if let item = batch.take() { return item }
      return channel.loop.isCurrent && !hasEnded ? channel.value.readOne() : nil
    }
  }
}

/// Items that the loop has handed over together and that were not returned yet. All iterators take
/// from them: one may stop in the middle, and another go on.
private final class ItemBatch: Sendable {
  /// The next item last.
  private let items = Mutex<[[UInt8]]>([])
  private let left = Atomic(0)

  /// The number of items.
  var count: Int { left.load(ordering: .relaxed) }

  /// Adds items behind those that are here, the first one last.
  func put(_ items: [[UInt8]]) {
    self.items.withLock { kept in
      if kept.isEmpty { kept = items } else { kept.insert(contentsOf: items, at: 0) }
      left.store(kept.count, ordering: .relaxed)
    }
  }

  /// Takes the next item; nil if there is none.
  func take() -> [UInt8]? { count > 0 ? takeLast() : nil }

  private func takeLast() -> [UInt8]? {
    items.withLock { kept in
      let item = kept.popLast()
      left.store(kept.count, ordering: .relaxed)
      return item
    }
  }
}

extension ItemChannel {
  /// The error of an item that was read and does not decode; of those that were read, `others` do
  /// not count as received.
  func undecodable(_ reason: BodyError, _ others: UInt64) -> LongLinkError {
    // Whoever responds with items has run the handler.
    let code: LongLinkError.Code = reason.code == .outOfMemory ? .overloaded : .decodingFailed
    return error(code, "\(reason)", delivery: isRequester ? .answered : nil)
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
