// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary
public import LongLinkCore
public import LongLinkDriver
internal import LongLinkTransport
internal import Synchronization

/// Sends the same items to any number of streams: to each stream whose handler calls `send(to:)`.
///
///     let prices = ItemBroadcast<[UInt8]>(.dropOldest(64))
///     server.routeStream(7, .responseItems) { _, _, writer in
///       try await prices.send(to: writer)
///       return []
///     }
///     try prices.publish(quote)
///
/// An item is encoded once. Each subscriber has a buffer, whose policy says what happens when the
/// subscriber is slower than the items. You can use a broadcast from any thread.
///
/// Items have numbers, which rise by one. A broadcast can remember the last ones: then
/// `send(to:after:)` serves clients whose streams were cut off.
public final class ItemBroadcast<Message: BodyEncodable & Sendable>: Sendable {
  private typealias List = BroadcastList<Int, EncodedItem>

  private let list = List()
  private let subscribe: @Sendable (List) -> BroadcastSubscription<EncodedItem>
  private let memory: Mutex<RememberedItems>

  /// Makes a broadcast whose buffers drop items when they are full.
  ///
  /// It remembers the last `remembering` items, 0 by default, and at most `bytes` bytes of them, 16
  /// MiB by default. The first item gets the number `first`, which is at least 1; by default, the
  /// number of microseconds since 1970, in a simulation by its calendar. So after a restart the
  /// numbers are larger than before, unless the server publishes more than a million items a second
  /// or its clock is set back. If that can happen, pass the number after the last one. Traps if
  /// `remembering` or `bytes` is negative, or `first` is 0.
  public init(
    _ buffer: PushBuffer<Never>, remembering: Int = 0, bytes: Int = 16_777_216,
    numberedFrom first: UInt64? = nil
  ) {
    subscribe = { $0.subscription(to: nil, buffer) }
    memory = Mutex(RememberedItems(most: remembering, bytes: bytes, first: first))
  }

  /// Makes a broadcast that ends a stream whose buffer is full: with code 429, after the buffered
  /// items.
  ///
  /// It remembers the last `remembering` items, 0 by default, and at most `bytes` bytes of them, 16
  /// MiB by default. The first item gets the number `first`, by default the number of microseconds
  /// since 1970. Traps if `remembering` or `bytes` is negative, or `first` is 0.
  public init(
    _ buffer: PushBuffer<LongLinkError>, remembering: Int = 0, bytes: Int = 16_777_216,
    numberedFrom first: UInt64? = nil
  ) {
    subscribe = { $0.subscription(to: nil, buffer) }
    memory = Mutex(RememberedItems(most: remembering, bytes: bytes, first: first))
  }

  /// Sends the items that are published from now on to a stream, until `finish` is called.
  ///
  /// Throws a `Rejection` with 429 if the stream was too slow for a buffer that closes,
  /// `CancellationError` if the task is cancelled while it waits for an item, and otherwise as
  /// `ItemWriter.write` does.
  public func send(to writer: ItemWriter<Message>) async throws {
    try await send(subscribe(list), to: writer)
  }

  /// Sends all items after the one with this number to a stream, once each and in order: first the
  /// remembered ones, then new ones, until `finish` is called. With 0, sends only items that are
  /// published from now on.
  ///
  /// New items go through the stream's buffer: if it drops items when it is full, a slow stream
  /// misses those. Throws a `Rejection` with 410 if some of the earlier items are no longer
  /// remembered: because the number is too old, or of another run of the server, or because the
  /// stream is too slow. Otherwise it throws as `send(to:)` does.
  public func send(to writer: ItemWriter<Message>, after number: UInt64) async throws {
    guard number > 0 else { return try await send(to: writer) }
    try await send(to: writer, following: number)
  }

  /// The number of the newest item; before there is one, the number below the first one's.
  ///
  /// Give it to a client when its stream begins: the client can then continue with
  /// `send(to:after:)`, even if the stream is cut off before the first item.
  public var lastNumber: UInt64 { memory.withLock { $0.next - 1 } }

  private func send(to writer: ItemWriter<Message>, following number: UInt64) async throws {
    var position = number
    while true {
      // One item at a time, so that a slow stream does not retain items that are forgotten
      // meanwhile.
      let (following, subscription) = memory.withLock(of: self) { memory in
        let following = memory.following(position)
        // Items that are published from now on go to the subscription.
        if case .nothing = following { return (following, Optional(subscribe(list))) }
        return (following, nil)
      }
      if let subscription { return try await send(subscription, to: writer) }
      guard case .item(let item) = following else {
        throw Rejection(.gone, "the items after \(position) are not remembered")
      }
      try await writer.write(encoded: item)
      position += 1
    }
  }

  /// Sends all items that are remembered to a stream, and then those that are published, once each
  /// and in order, until `finish` is called.
  ///
  /// Throws a `Rejection` with 410 if the stream is so slow that some of the remembered items are
  /// forgotten before their turn, and otherwise as `send(to:)` does.
  public func sendRemembered(to writer: ItemWriter<Message>) async throws {
    let (oldest, subscription) = memory.withLock(of: self) { memory in
      let oldest = memory.oldestNumber
      return (oldest, oldest == nil ? Optional(subscribe(list)) : nil)
    }
    if let subscription { return try await send(subscription, to: writer) }
    if let oldest { try await send(to: writer, following: oldest - 1) }
  }

  private func send(
    _ subscription: BroadcastSubscription<EncodedItem>, to writer: ItemWriter<Message>
  ) async throws {
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

  /// Gives every subscriber an item, without waiting for any, and returns its number. Throws
  /// `BodyError` if the item has no encoding.
  @discardableResult
  public func publish(_ item: Message) throws(BodyError) -> UInt64 {
    let bytes = try item.encodedBytes()
    return memory.withLock(of: self) { publish(bytes, &$0) }
  }

  /// Gives every subscriber the item that `make` returns for the item's number, without waiting for
  /// any, and returns the number. Throws `BodyError` if the item has no encoding; the next item
  /// then gets the same number.
  ///
  /// Other threads that publish wait for `make`. It must not use the broadcast.
  @discardableResult
  public func publish(numbered make: (UInt64) -> Message) throws(BodyError) -> UInt64 {
    try memory.withLock(of: self) { (memory) throws(BodyError) in
      publish(try make(memory.next).encodedBytes(), &memory)
    }
  }

  /// Called under the lock, so that subscribers get items in the order of their numbers.
  private func publish(_ bytes: [UInt8], _ memory: inout RememberedItems) -> UInt64 {
    list.publish(EncodedItem(bytes: bytes), for: 0)
    return memory.add(bytes)
  }

  /// Ends all streams, after the items that are buffered: `send(to:)` returns.
  public func finish() { list.close() }

  /// The number of streams that get the items that are published now; those that still get
  /// remembered ones are not counted.
  public var subscribers: Int { list.subscriberCount }
  /// The number of items that full buffers have dropped since the broadcast was made.
  public var dropped: UInt64 { list.counts.dropped }
  /// The number of streams that have ended with 429 because their buffers were full.
  public var closed: UInt64 { list.counts.closed }
}

private struct EncodedItem: Broadcastable {
  let bytes: [UInt8]

  var bufferedBytes: Int { bytes.count }
  static var plural: String { "items" }
}

/// The last items of a broadcast, with their numbers.
private struct RememberedItems {
  private let most: Int
  private let mostBytes: Int
  /// The remembered items, from the index `oldest` on. Earlier elements are empty.
  private var items: [[UInt8]] = []
  private var oldest = 0
  private var bytes = 0
  /// The number of the next item.
  private(set) var next: UInt64

  init(most: Int, bytes: Int, first: UInt64?) {
    precondition(most >= 0 && bytes >= 0, "what a broadcast remembers is at least 0")
    precondition(first != 0, "the numbers of a broadcast begin at 1 or later")
    self.most = most
    mostBytes = bytes
    next = first ?? RememberedItems.microseconds()
  }

  private var count: Int { items.count - oldest }
  /// The number of the oldest item that is remembered; nil if there is none.
  var oldestNumber: UInt64? { count > 0 ? next - UInt64(count) : nil }

  /// Adds an item; returns its number.
  mutating func add(_ item: [UInt8]) -> UInt64 {
    defer { next += 1 }
    items.append(item)
    bytes += item.count
    while count > most || bytes > mostBytes {
      bytes -= items[oldest].count
      items[oldest] = []
      oldest += 1
    }
    if oldest >= 64, oldest * 2 >= items.count {
      items.removeFirst(oldest)
      oldest = 0
    } else if oldest == items.count {
      items.removeAll(keepingCapacity: true)
      oldest = 0
    }
    return next
  }

  /// The result of looking for the item after a number.
  enum Following {
    case item([UInt8])
    /// There is no later item yet.
    case nothing
    /// A later item is not remembered any more, or the number was not given to any item yet.
    case forgotten
  }

  func following(_ number: UInt64) -> Following {
    guard number < next, next - 1 - number <= UInt64(count) else { return .forgotten }
    return items.suffix(Int(next - 1 - number)).first.map { .item($0) } ?? .nothing
  }

  /// The system's time, in microseconds since 1970; in a simulation its own, so that each run of a
  /// seed has the same numbers.
  private static func microseconds() -> UInt64 {
    if let loop = EventLoop.current, !loop.isOfSystem {
      return UInt64(max(1, loop.driver.unixNanoseconds / 1_000))
    }
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return UInt64(max(1, Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000))
  }
}
