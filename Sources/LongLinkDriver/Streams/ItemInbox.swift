// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// Items that have arrived and wait for the application, in order.
///
/// Small items share one buffer, in which each takes less than the credit that was granted for it.
/// The buffer doubles as it grows, so its memory is up to twice that. Each larger item keeps its
/// own bytes, which are not copied again.
struct ItemInbox: ~Copyable {
  /// For each item its cost and size, of four bytes each, and its bytes, unless these are in
  /// `joined`.
  private var bytes = ByteQueue()
  private var joined: [[UInt8]] = []
  /// The index in `joined` of the next item.
  private var nextJoined = 0
  private(set) var count = 0

  private static let headerLength = 8
  /// The size, in bytes, from which on an item keeps its own memory: it is copied once, not twice.
  static let leastAlone = 4_096
  /// The mark in place of the size of an item that is in `joined`.
  private static let isJoined = UInt32.max

  var isEmpty: Bool { count == 0 }
  /// The bytes that the inbox has allocated, without items that have memory of their own.
  var allocatedBytes: Int { bytes.capacity + joined.capacity * MemoryLayout<[UInt8]>.stride }

  mutating func append(_ item: RawSpan, cost: Int) {
    appendHeader(cost: cost, size: UInt32(item.byteCount))
    bytes.append(item)
    count += 1
  }

  mutating func append(joined item: [UInt8], cost: Int) {
    appendHeader(cost: cost, size: ItemInbox.isJoined)
    joined.append(item)
    count += 1
  }

  private mutating func appendHeader(cost: Int, size: UInt32) {
    unsafe bytes.append(count: ItemInbox.headerLength) { header in
      unsafe header.storeBytes(of: UInt32(cost), toByteOffset: 0, as: UInt32.self)
      unsafe header.storeBytes(of: size, toByteOffset: 4, as: UInt32.self)
    }
  }

  /// Removes the first item, and returns it with its cost. There must be one.
  mutating func removeFirst() -> (item: [UInt8], cost: Int) {
    precondition(count > 0)
    let start = bytes.position
    let header = start + ItemInbox.headerLength
    let (cost, size) = bytes.withBytes(start..<header) { span in
      (
        unsafe span.unsafeLoadUnaligned(fromByteOffset: 0, as: UInt32.self),
        unsafe span.unsafeLoadUnaligned(fromByteOffset: 4, as: UInt32.self)
      )
    }
    count -= 1
    guard size == ItemInbox.isJoined else {
      let end = header + Int(size)
      let item = bytes.withBytes(header..<end) { [UInt8](decoding: $0) }
      bytes.removeFirst(end - start)
      return (item, Int(cost))
    }
    bytes.removeFirst(ItemInbox.headerLength)
    var item: [UInt8] = []
    swap(&item, &joined[nextJoined])
    nextJoined += 1
    if nextJoined == joined.count {
      joined.removeAll(keepingCapacity: joined.count <= 16)
      nextJoined = 0
    } else if nextJoined >= 16, nextJoined >= joined.count / 2 {
      // Otherwise, a reader that is always behind would let the array grow without end.
      joined.removeFirst(nextJoined)
      nextJoined = 0
    }
    return (item, Int(cost))
  }

  /// Frees memory that is much larger than the content.
  mutating func releaseRoom() { bytes.releaseRoom() }
}
