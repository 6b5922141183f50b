// SPDX-License-Identifier: Apache-2.0

/// A ring of what the links of one loop have read, written, been told and decided: the flight
/// recorder. It belongs to the loop, not to a link, so that an idle link costs nothing and a quiet
/// one loses little. All functions are called on the loop.
///
/// A record has a head of 16 bytes (its size in bits 0 to 15, the event, how often the link's
/// messages and effects were taken since its record before, and the link, in one word; then the
/// instant), numbers of 8 bytes each, and bytes or parts of frames. No record spans two segments.
@safe @usableFromInline package final class Recorder {
  /// The most bytes that the ring has.
  package let capacity: Int
  /// Whether the bodies of messages are recorded too.
  package let recordsBodies: Bool
  /// The instant 0 of the loop's clock in nanoseconds since 1970.
  private let epoch: Int64
  private let loop: UInt8

  let segmentSize: Int
  /// The full segments, the oldest first.
  private var full: [RecorderSegment] = []
  private var hasForgotten = false
  /// The segment that is being filled.
  private var segment: RecorderSegment
  /// Where its next record begins, and the bytes from there to its end.
  @exclusivity(unchecked) @usableFromInline var place: UnsafeMutableRawPointer
  @safe @exclusivity(unchecked) @usableFromInline var room: Int
  /// Where the last record begins.
  @exclusivity(unchecked) @usableFromInline var last: UnsafeMutableRawPointer
  /// The link whose messages and effects were taken last, and how often since its last record.
  @safe @exclusivity(unchecked) @usableFromInline var taker: UInt32 = 0
  @safe @exclusivity(unchecked) @usableFromInline var takes: UInt64 = 0
  /// The least number for the next link.
  private var nextLink: UInt32 = 1
  /// What is still to be written of the frames that were written in part.
  var rests: [UInt32: Rest] = [:]

  /// The rest of a frame: bytes to keep, and behind them bytes to leave out.
  struct Rest {
    var kept: Int
    var leftOut: Int
  }

  /// In the word before a part of a frame: the kept bytes, and whether the frame begins or ends.
  static let keptMask: UInt64 = 0x3FFF_FFFF
  static let begins: UInt64 = 1 << 30
  static let ends: UInt64 = 1 << 31

  /// The smallest ring, in bytes.
  package static let leastCapacity = 16_384

  /// Makes a recorder whose ring has at most `capacity` bytes, at least 16 KiB. Memory is taken as
  /// the ring fills.
  package init(capacity: Int, recordsBodies: Bool, epoch: Int64, loop: UInt8) {
    self.capacity = max(capacity, Recorder.leastCapacity)
    self.recordsBodies = recordsBodies
    self.epoch = epoch
    self.loop = loop
    segmentSize = min(65_535, self.capacity / 8) / 16 * 16
    segment = RecorderSegment(size: segmentSize)
    unsafe place = segment.bytes
    unsafe last = segment.bytes
    room = segmentSize
  }

  /// Returns the number by which a link is recorded: `id`, if no link of the loop has had it or a
  /// larger one.
  package func number(for id: UInt32) -> UInt32 {
    let number = max(id, nextLink)
    nextLink = number == .max ? 1 : number + 1
    return number
  }

  /// What the ring holds now.
  package func snapshot() -> RecorderSnapshot {
    RecorderSnapshot(
      full: full, last: segment, lastUsed: segmentSize - room, hasForgotten: hasForgotten,
      epoch: epoch, loop: loop)
  }

  // MARK: Records

  /// Makes room for a record, and writes its head. `size` is at most half of a segment.
  @inlinable @inline(__always)
  func begin(
    _ event: RecordedEvent, of link: UInt32, at now: LinkInstant, _ size: Int
  ) -> UnsafeMutableRawPointer {
    if takes != 0, taker != link { noteTakes(at: now) }
    if size > room { turnOver() }
    let start = unsafe place
    unsafe place = start + size
    unsafe last = start
    room &-= size
    let head =
      UInt64(truncatingIfNeeded: size) | UInt64(event.rawValue) << 16 | takes << 24
      | UInt64(link) << 32
    takes = 0
    // There is room for the whole record.
    unsafe start.storeBytes(of: head, as: UInt64.self)
    unsafe start.storeBytes(of: now.nanoseconds, toByteOffset: 8, as: Int64.self)
    return unsafe start
  }

  /// Notes an event without numbers.
  @inlinable @inline(__always)
  package func note(_ event: RecordedEvent, of link: UInt32, at now: LinkInstant) {
    _ = unsafe begin(event, of: link, at: now, 16)
  }

  /// Notes an event with one number.
  @inlinable @inline(__always)
  package func note(_ event: RecordedEvent, of link: UInt32, at now: LinkInstant, _ a: UInt64) {
    let start = unsafe begin(event, of: link, at: now, 24)
    unsafe start.storeBytes(of: a, toByteOffset: 16, as: UInt64.self)
  }

  /// Notes an event with two numbers.
  @inlinable @inline(__always)
  package func note(
    _ event: RecordedEvent, of link: UInt32, at now: LinkInstant, _ a: UInt64, _ b: UInt64
  ) {
    let start = unsafe begin(event, of: link, at: now, 32)
    unsafe start.storeBytes(of: a, toByteOffset: 16, as: UInt64.self)
    unsafe start.storeBytes(of: b, toByteOffset: 24, as: UInt64.self)
  }

  /// Notes an event with three numbers.
  @inlinable @inline(__always)
  package func note(
    _ event: RecordedEvent, of link: UInt32, at now: LinkInstant, _ a: UInt64, _ b: UInt64,
    _ c: UInt64
  ) {
    let start = unsafe begin(event, of: link, at: now, 40)
    unsafe start.storeBytes(of: a, toByteOffset: 16, as: UInt64.self)
    unsafe start.storeBytes(of: b, toByteOffset: 24, as: UInt64.self)
    unsafe start.storeBytes(of: c, toByteOffset: 32, as: UInt64.self)
  }

  /// Notes an event with any numbers, and bytes behind them. Bytes that do not fit are cut off.
  package func note(
    _ event: RecordedEvent, of link: UInt32, at now: LinkInstant, numbers: [UInt64],
    bytes: [UInt8] = []
  ) {
    precondition(numbers.count == event.numbers, "\(event) has \(event.numbers) numbers")
    let count = min(bytes.count, segmentSize / 2 - 16 - 8 * numbers.count)
    let start = unsafe begin(event, of: link, at: now, 16 + 8 * numbers.count + count)
    for (index, number) in numbers.enumerated() {
      unsafe start.storeBytes(of: number, toByteOffset: 16 + 8 * index, as: UInt64.self)
    }
    unsafe bytes.withUnsafeBytes { source in
      // The record has room for `count` bytes, which are within the array.
      unsafe UnsafeMutableRawBufferPointer(
        start: start + 16 + 8 * numbers.count, count: count
      ).copyMemory(from: UnsafeRawBufferPointer(rebasing: source[..<count]))
    }
  }

  /// Notes that a body could not be encoded: that of the last record, if this is a request, a
  /// response, a push or an item of the link. Its encoder may have used another link since.
  package func noteFailure(of link: UInt32) {
    // The last record is whole, and those of these events have at least two numbers.
    let head = unsafe last.loadUnaligned(as: UInt64.self)
    guard UInt32(truncatingIfNeeded: head >> 32) == link,
      let event = RecordedEvent(rawValue: UInt8(truncatingIfNeeded: head >> 16)),
      [.request, .streamRequest, .push, .respond, .sendItem].contains(event)
    else { return }
    let isRequest = event == .request || event == .streamRequest
    let flag = UInt64(RecordedFlags.failed.rawValue) << (isRequest ? 32 : 40)
    let number = unsafe last.loadUnaligned(fromByteOffset: 24, as: UInt64.self)
    unsafe last.storeBytes(of: number | flag, toByteOffset: 24, as: UInt64.self)
  }

  /// Counts that a message or an effect of a link was taken, or that there was none.
  @inlinable @inline(__always)
  package func took(of link: UInt32, at now: @autoclosure () -> LinkInstant) {
    if taker == link, takes < 255 { takes &+= 1 } else { otherTook(link, at: now()) }
  }

  @usableFromInline func otherTook(_ link: UInt32, at now: LinkInstant) {
    if takes > 0 { noteTakes(at: now) }
    taker = link
    takes = 1
  }

  /// Notes how often messages and effects were taken, before another link's record.
  @usableFromInline func noteTakes(at now: LinkInstant) {
    let count = takes
    takes = 0
    note(.taken, of: taker, at: now, count)
  }

  /// Begins another segment. If the ring is full, its oldest segment is written anew, unless a
  /// snapshot has it.
  @usableFromInline func turnOver() {
    segment.used = segmentSize - room
    full.append(segment)
    if (full.count + 1) * segmentSize > capacity {
      hasForgotten = true
      var oldest = full.removeFirst()
      segment =
        isKnownUniquelyReferenced(&oldest) ? oldest : RecorderSegment(size: segmentSize)
    } else {
      segment = RecorderSegment(size: segmentSize)
    }
    unsafe place = segment.bytes
    room = segmentSize
  }
}
