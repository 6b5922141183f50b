// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
@_spi(Loop) internal import LongLinkTransport
internal import Synchronization

/// Reads the items of the peer, as bytes.
///
/// With a lease, these are the items of a response: an error cancels the request, and so does the
/// release of the last copy before the end.
@usableFromInline package struct ItemReader: Sendable {
  private let channel: BoundChannel
  private let batch = ItemBatch()
  private let lease: StreamLease?
  /// The memory of the item that was returned last, in decoded form; nil if it is not counted.
  let memory: ItemMemory?
  private var hasEnded = false
  /// Whether the items end when the connection is being left.
  var endsWhenDraining = false
  /// The error of an item that does not decode, which has cancelled the request.
  private var failure: LongLinkError?

  /// Makes a reader of items that are decoded, or not.
  init(_ channel: BoundChannel, _ lease: StreamLease? = nil, decodes: Bool) {
    self.channel = channel
    self.lease = lease
    memory = decodes ? channel.decoded.map { ItemMemory(in: $0) } : nil
  }

  /// Returns the next item; nil at the end.
  @usableFromInline
  package mutating func next(
    isolation actor: isolated (any Actor)?
  ) async throws(LongLinkError) -> [UInt8]? {
    memory?.release()
    if let item = takeReady() { return item }
    if hasEnded { return nil }
    if let failure { throw failure }
    // One item at a time if draining ends the items: a batch would be read nevertheless.
    let limit = channel.loop.isCurrent || endsWhenDraining ? 1 : 64
    switch await nextRead(of: channel, upTo: limit, untilDraining: endsWhenDraining) {
    case .items(var items):
      if items.count == 1 { return items[0] }
      items.reverse()
      let item = items.removeLast()
      batch.put(items)
      return item
    case .ended(.success(let response)):
      hasEnded = true
      lease?.end(with: response)
      return nil
    case .ended(.failure(let error)):
      // After an error, even if only this read has failed, there is no end to report.
      guard let lease else { throw error }
      lease.cancel()
      throw await channel.settled(error)
    }
  }

  /// Returns the error for the item that was returned last. Only the items before it count as
  /// received.
  mutating func undecodable(_ reason: BodyError) async -> LongLinkError {
    lease?.cancel()
    let others = UInt64(batch.count) + 1
    let error = await channel.loop.run { [channel] in channel.value.undecodable(reason, others) }
    // A requester gets no further items; a handler continues with the next one.
    if lease != nil {
      failure = error
      batch.clear()
    }
    return error
  }

  /// Takes the next item if it has arrived, so that nothing has to wait.
  @inline(__always)
  private func takeReady() -> [UInt8]? {
    guard failure == nil else { return nil }
    if let item = batch.take() { return item }
    guard channel.loop.isCurrent, !hasEnded else { return nil }
    if endsWhenDraining, channel.value.isDraining { return nil }
    return channel.value.readOne()
  }
}

/// Items that the loop has handed over together and that were not returned yet. All copies of an
/// iterator take from them, so one may continue where another stopped.
final class ItemBatch: Sendable {
  /// The items in reverse order: the next one is last.
  private let items = Mutex<[[UInt8]]>([])
  private let left = Atomic(0)

  /// The number of items that were not returned yet.
  var count: Int { left.load(ordering: .relaxed) }

  /// Adds items, in reverse order, behind those that were not returned yet.
  func put(_ items: [[UInt8]]) {
    self.items.withLock { kept in
      if kept.isEmpty { kept = items } else { kept.insert(contentsOf: items, at: 0) }
      left.store(kept.count, ordering: .relaxed)
    }
  }

  func clear() {
    items.withLock { kept in
      kept = []
      left.store(0, ordering: .relaxed)
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
  /// Returns the error for an item that does not decode. Of the items that were read, the last
  /// `others` do not count as received.
  func undecodable(_ reason: BodyError, _ others: UInt64) -> LongLinkError {
    // A peer that responds with items has run its handler.
    let code: LongLinkError.Code = reason.code == .outOfMemory ? .overloaded : .decodingFailed
    return error(code, "\(reason)", delivery: isRequester ? .answered : nil)
      .with(itemsReceived: itemsRead - min(itemsRead, others))
  }
}

/// Waits on the loop for up to `limit` items, or for the end.
private func nextRead(
  of channel: BoundChannel, upTo limit: Int, untilDraining: Bool
) async -> ItemChannel.Read {
  let wait = ChannelWait()
  return await withTaskCancellationHandler {
    await suspend { (waiter: Waiter<ItemChannel.Read>) in
      channel.onLoop { channel in
        if untilDraining, channel.isDraining { return waiter(.ended(.success([]))) }
        if let read = channel.read(upTo: limit) { return waiter(read) }
        let id = channel.wait(untilDraining: untilDraining) { waiter($0) }
        if !wait.begin(id) { channel.cancelRead(id) }
      }
    }
  } onCancel: {
    if let id = wait.cancel() {
      channel.loop.execute { channel.value.cancelRead(id) }
    }
  }
}
