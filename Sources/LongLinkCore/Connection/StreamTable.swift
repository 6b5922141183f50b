// SPDX-License-Identifier: Apache-2.0

/// The streams of one connection by serial, of both sides.
package struct StreamTable: ~Copyable {
  var table: SerialTable<StreamState>
  /// The fragments of items that are arriving.
  private var partials: SerialTable<FragmentBuffer>
  /// The items that wait to be sent.
  var pendings: SerialTable<PendingItem>
  /// What arrived on ended streams and was not taken, in bytes of credit.
  private var unread: SerialTable<Int>
  private let windows: StreamWindows
  /// The largest item that this side accepts.
  let maxBody: Int
  /// Determines the first credit of the other side, and whether credit holds senders back.
  private let carriage: Carriage
  /// The sum of all windows.
  private(set) var reserved = 0
  /// The most that `reserved` can become, without items that are larger than their windows.
  private(set) var ceiling = 0
  /// The bytes of items that this side holds: arrived and not taken, or waiting to be sent.
  private(set) var heldBytes = 0
  /// The memory of the fragments of items that are arriving, beyond their bytes.
  private(set) var partialRoom = 0

  init(_ settings: ConnectionSettings) {
    let serialMix = settings.serialMix
    windows = settings.windows
    maxBody = settings.maxBody
    carriage = Carriage(settings.role, isShort: settings.isShort)
    table = SerialTable(mix: serialMix)
    partials = SerialTable(mix: serialMix)
    pendings = SerialTable(mix: serialMix)
    unread = SerialTable(mix: serialMix)
  }

  @inline(__always)
  package var isEmpty: Bool { table.isEmpty }
  var capacity: Int { table.capacity }
  /// The limit of all windows together, in bytes.
  var limit: Int { windows.total }
  var usesCredit: Bool { carriage.usesCredit }

  /// The slot of a stream, valid until another one is added or removed.
  @inline(__always)
  func slot(of serial: UInt32) -> Int? { table.slot(of: serial) }
  subscript(slot: Int) -> StreamState { table[slot: slot] }

  /// Whether another window of this size fits into the limit plus `extra` bytes.
  package func hasRoom(for window: Int, extra: Int = 0) -> Bool {
    reserved + window <= limit + extra
  }

  /// The directions in which a stream was opened, by a request of the peer.
  package func shape(of serial: UInt32) -> StreamShape {
    guard !isEmpty, let slot = slot(of: serial) else { return [] }
    var shape: StreamShape = []
    if self[slot].incoming != nil { shape.insert(.requestItems) }
    if self[slot].outgoing != nil { shape.insert(.responseItems) }
    return shape
  }

  /// Opens the stream that a request of the peer asks for in its metadata. Returns false if its
  /// first credit does not fit into the limit of all windows. Throws above `Wire.mostCredit`.
  mutating func open(_ serial: UInt32, _ metadata: ReceivedMetadata) throws(Violation) -> Bool {
    if let credit = metadata.credit, credit > Wire.mostCredit {
      throw Violation(
        .creditNotAllowed, kind: FrameKind.request.rawValue, serial: serial, value: UInt64(credit))
    }
    var stream = StreamState(isRequestWhole: true)
    if metadata.items {
      guard hasRoom(for: windows.first) else { return false }
      stream.incoming = ItemInflow(
        share: windows.first, window: windows.first, largestWindow: windows.largest)
    }
    stream.outgoing = metadata.credit.map {
      ItemOutflow(credit: carriage.firstCredit(of: Int($0)), priority: metadata.priority)
    }
    insert(stream, for: serial)
    return true
  }

  /// Opens the stream of a request of this side that is about to be sent; the peer grants `credit`.
  mutating func open(_ serial: UInt32, _ terms: StreamTerms, credit: Int, priority: UInt32) {
    var stream = StreamState(isRequestWhole: false)
    if let credit = terms.credit {
      stream.incoming = ItemInflow(
        share: credit, window: credit, largestWindow: terms.largestWindow ?? windows.largest)
    }
    if terms.sendsItems {
      stream.outgoing = ItemOutflow(
        credit: carriage.firstCredit(of: credit), priority: priority)
    }
    insert(stream, for: serial)
  }

  private mutating func insert(_ stream: StreamState, for serial: UInt32) {
    reserved += stream.incoming?.reserved ?? 0
    ceiling += stream.incoming?.ceiling ?? 0
    table.insert(stream, for: serial)
  }

  /// Removes a stream, and returns whether an item waits to be sent. With `keepingUnread`, what was
  /// not taken counts until `tookUnread`.
  mutating func remove(_ serial: UInt32, keepingUnread: Bool) -> Bool {
    guard !isEmpty, let stream = table.remove(serial) else { return false }
    reserved -= stream.incoming?.reserved ?? 0
    ceiling -= stream.incoming?.ceiling ?? 0
    heldBytes -= stream.incoming?.held ?? 0
    if keepingUnread, let rest = stream.incoming?.untaken, rest > 0 { keepUnread(rest, serial) }
    _ = removePartial(serial)
    removePending(serial)
    return stream.outgoing?.isPending == true
  }

  mutating func removeAll() {
    table.removeAll()
    partials.removeAll()
    pendings.removeAll()
    unread.removeAll()
    (reserved, ceiling, heldBytes, partialRoom) = (0, 0, 0, 0)
  }

  mutating func releaseStorage() {
    table.releaseStorage(over: 16)
    partials.releaseStorage(over: 16)
    pendings.releaseStorage(over: 16)
    unread.releaseStorage(over: 16)
  }

  mutating func setRequestWhole(_ slot: Int) { table[slot: slot].isRequestWhole = true }

  /// Whether this side has sent items or credit on a stream.
  func hasSpoken(_ serial: UInt32) -> Bool { slot(of: serial).map { self[$0].hasSpoken } ?? false }

  /// Whether the items that the peer has sent fill the window of a stream.
  func isFull(_ serial: UInt32) -> Bool {
    slot(of: serial).flatMap { self[$0].incoming }?.isFull ?? false
  }

  /// Whether the items of the peer have ended, or there are none.
  func hasReceivedAll(_ serial: UInt32) -> Bool {
    slot(of: serial).flatMap { self[$0].incoming }?.hasEnded ?? true
  }

  /// Whether the items of this side have ended, or there are none.
  func hasSentAll(_ serial: UInt32) -> Bool {
    slot(of: serial).flatMap { self[$0].outgoing }?.hasEnded ?? true
  }

  /// Changes the account of the receiving direction in place; nil if there is none.
  @inline(__always)
  mutating func changeIncoming<Result, Failure>(
    _ slot: Int, _ change: (inout ItemInflow) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    guard let old = table[slot: slot].incoming?.sums else { return nil }
    let result = try change(&table[slot: slot].incoming!)
    let new = table[slot: slot].incoming!.sums
    reserved += new.reserved - old.reserved
    ceiling += new.ceiling - old.ceiling
    heldBytes += new.held - old.held
    return result
  }

  mutating func setIncoming(_ slot: Int, _ new: ItemInflow) {
    _ = changeIncoming(slot) { $0 = new }
  }
}

// MARK: - Items of ended streams

extension StreamTable {
  /// Whether items of an ended stream were not taken.
  package func holdsUnread(_ serial: UInt32) -> Bool { !unread.isEmpty && unread.contains(serial) }

  private mutating func keepUnread(_ cost: Int, _ serial: UInt32) {
    // The serial of an exchange that has ended can be used again.
    unread[serial] = (unread[serial] ?? 0) + cost
    count(unread: cost)
  }

  /// Notes that this much of an ended stream was taken, or all that was not.
  mutating func tookUnread(_ serial: UInt32, _ cost: Int) {
    guard let rest = unread[serial] else { return }
    let taken = min(cost, rest)
    if taken == rest { unread.remove(serial) } else { unread[serial] = rest - taken }
    count(unread: -taken)
  }

  private mutating func count(unread cost: Int) {
    reserved += cost
    ceiling += cost
    heldBytes += cost
  }
}

// MARK: - Items in parts

extension StreamTable {
  /// Adds a fragment of an item that is arriving, which `arrived` has accounted for.
  ///
  /// The room for further fragments is within the credit that is left, so that the memory of the
  /// item is within what its stream takes of the limit of all windows.
  mutating func append(_ fragment: UnsafeRawBufferPointer, to serial: UInt32, _ slot: Int) {
    let credit = self[slot].incoming?.credit ?? 0
    if !partials.contains(serial) { partials.insert(FragmentBuffer(), for: serial) }
    let room = partials.update(serial) { partial in
      let room = partial.room
      // The caller guarantees that the bytes are valid during this call.
      unsafe partial.append(fragment, credit: credit)
      return partial.room - room
    }
    partialRoom += room ?? 0
  }

  /// The number of bytes that have arrived of an item.
  func partialCount(_ serial: UInt32) -> Int {
    partials.slot(of: serial).map { partials[slot: $0].count } ?? 0
  }

  /// Takes the fragments of an item, the last of which has arrived now.
  mutating func takePartial(
    _ serial: UInt32, joining last: UnsafeRawBufferPointer
  ) -> [UInt8] {
    // The caller guarantees that the bytes are valid during this call.
    unsafe (removePartial(serial) ?? FragmentBuffer()).joined(with: last)
  }

  private mutating func removePartial(_ serial: UInt32) -> FragmentBuffer? {
    guard let partial = partials.remove(serial) else { return nil }
    partialRoom -= partial.room
    return partial
  }

  /// The item that waits to be sent.
  func pending(_ serial: UInt32) -> PendingItem? { pendings[serial] }

  mutating func setPending(_ item: PendingItem, _ serial: UInt32) {
    if pendings[serial] == nil { heldBytes += item.body.count }
    pendings[serial] = item
  }

  mutating func removePending(_ serial: UInt32) {
    if let pending = pendings.remove(serial) { heldBytes -= pending.body.count }
  }
}
