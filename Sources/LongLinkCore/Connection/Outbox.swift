// SPDX-License-Identifier: Apache-2.0

/// The outgoing queue of one connection.
///
/// Most frames are encoded straight into `bytes`, which are sent in few writes per turn. A message
/// that is too large for one fragment, or arrives while more than `encodeLimit` bytes wait, is
/// queued with its own copy of the body and encoded as room appears. So control frames, small
/// messages and more urgent ones can pass it.
///
/// Of the encoded bytes ahead of a new frame, at most three fragments belong to large messages: two
/// of one message, and one more of an overdue message. Fragments are encoded only while less than
/// one fragment's bytes wait, or, if a message is overdue, less than half of `encodeLimit`.
package struct Outbox: ~Copyable {
  /// What became of an appended frame.
  package enum Placement: Equatable, Sendable {
    /// The frame's first byte has this offset in the stream.
    case encoded(at: UInt64)
    /// The frame is queued; an event reports when it begins.
    case queued
  }

  /// A step in the encoding of a queued frame.
  package enum Event: Equatable, Sendable {
    /// The first byte has been encoded, at this offset in the stream.
    case began(FrameKind, serial: UInt32, at: UInt64)
    /// The last byte has been encoded.
    case finished(FrameKind, serial: UInt32)
  }

  /// The result of a withdrawal.
  package enum Withdrawal: Equatable, Sendable {
    /// No byte of the frame has been written, and none will be.
    case unsent
    /// Some fragments had been encoded; no more follow.
    case partial
    /// The frame has been written, or is unknown.
    case tooLate
  }

  /// The dialect's encoder and the encoded requests; nil in the native layout.
  let dialect: DialectOutput?
  /// Whether both sides agreed to fragments.
  package var usesFragments = false
  /// The number of encoded bytes above which frames are queued.
  package var encodeLimit: Int
  /// Encoded bytes that have not been written.
  package internal(set) var bytes = ByteQueue()
  /// The number of frames encoded since the last write.
  package internal(set) var frames = 0
  /// The offset in the stream of the byte behind the last encoded one.
  var end: UInt64 = 0
  /// Ranges of `bytes` that were withdrawn and must not be written, in order and not adjacent.
  var holes: [Range<UInt64>] = []
  var kept: Backlog
  private let anchor = Anchor()

  /// A `serialMix` other than 0 spreads the serials of responses, which the peer has chosen.
  package init(
    dialect: (any DialectFraming)? = nil, encodeLimit: Int = 262_144, serialMix: UInt32 = 0
  ) {
    self.dialect = dialect.map(DialectOutput.init)
    self.encodeLimit = encodeLimit
    kept = Backlog(
      headerLength: self.dialect?.overhead ?? NativeLayout.headerLength, serialMix: serialMix)
  }

  /// The offset in the stream of the first byte that has not been written.
  package var written: UInt64 { end - UInt64(bytes.count) }
  /// The number of bytes that can be written now.
  package var encodedBytes: Int { bytes.count }
  /// The number of bytes of queued messages that are sent in fragments.
  package var largeBytes: Int { kept.largeBytes }
  /// The number of all waiting bytes.
  package var totalBytes: Int { bytes.count + kept.bytes }
  /// The memory in bytes that the outbox uses, without a small buffer kept between writes.
  var heldBytes: Int { bytes.count + room + kept.bytes + kept.count * Backlog.overhead }
  /// The unused memory in bytes; 0 for a buffer of the size that small messages need.
  var room: Int { bytes.capacity > 4_096 ? bytes.capacity - bytes.count : 0 }
  package var isEmpty: Bool { bytes.isEmpty && kept.isEmpty }
  /// Whether the backlog is so large that even small frames are queued.
  package var isCongested: Bool { bytes.count >= encodeLimit || kept.holdsSmall }
  /// Whether any message is queued.
  package var holdsBack: Bool { !kept.isEmpty }
}

extension Outbox {
  /// Encodes a frame at once, ahead of all queued messages.
  @discardableResult
  @inline(__always)
  package mutating func encode<Failure>(
    _ head: FrameHead,
    metadata: MetadataBlock? = nil,
    _ body: (inout OutputRawSpan) throws(Failure) -> Void
  ) throws(Failure) -> UInt64 {
    preconditionAtRest()
    anchor.setMark(true)
    defer { anchor.setMark(false) }
    let begin = end
    if let dialect {
      try encode(head, in: dialect, body)
      frames &+= 1
      return begin
    }
    let length = NativeLayout.headerLength + head.length
    try unsafe bytes.append(count: length) { (frame) throws(Failure) in
      let room = unsafe UnsafeMutableRawBufferPointer(
        rebasing: frame[NativeLayout.headerLength...])
      try unsafe Outbox.write(metadata, body, into: room)
      // Everything but the header of the frame was just written.
      unsafe NativeLayout.seal(head, at: frame.baseAddress!)
    }
    end += UInt64(length)
    frames &+= 1
    return begin
  }

  /// Whether an item of this size would be encoded at once. Fewer bytes may wait than for other
  /// messages, because its sender can wait: one whole fragment, so that two leave in one write.
  func takesItem(_ count: Int, _ priority: UInt32) -> Bool {
    bytes.count <= min(encodeLimit / 2, NativeLayout.headerLength + Wire.fragmentLimit)
      && (kept.isEmpty || !Outbox.isLargeItem(count) && !kept.precedes(.item, priority))
  }

  /// Encodes an item at once.
  @inline(__always)
  mutating func encodeItem<Failure>(
    _ head: FrameHead, _ body: (inout OutputRawSpan) throws(Failure) -> Void
  ) throws(Failure) {
    kept.wasPassed(by: head.length)
    try encode(head, body)
  }

  /// Queues a fragment of an item. It shares the memory of the item.
  mutating func enqueue(
    _ head: FrameHead, of item: [UInt8], from start: Int, priority: UInt32
  ) {
    kept.insert(
      head, item, from: start, priority: priority, isLarge: Outbox.isLargeItem(item.count))
  }

  /// Whether an item takes turns with fragments. Smaller ones go before fragments, like other
  /// messages of one frame.
  private static func isLargeItem(_ count: Int) -> Bool { count > 16_384 }

  /// Appends a frame that is already encoded.
  package mutating func append(encoded frame: [UInt8]) {
    preconditionAtRest()
    kept.wasPassed(by: frame.count)
    unsafe bytes.append(frame.span.bytes)
    end += UInt64(frame.count)
    frames &+= 1
  }

  /// Traps if a body makes its own connection send something while the body is being encoded. The
  /// new frame would be written into the middle of the other, into memory that may have moved.
  @inline(__always)
  private func preconditionAtRest() {
    precondition(!anchor.mark, "a body must not use its connection while it is encoded")
  }

  /// Takes the encoded bytes, for a frame that is sent to many connections.
  package mutating func takeEncoded() -> [UInt8] {
    bytes.takeAll()
  }

  /// Whether a push with a body of this length would be encoded at once and unfragmented.
  func takesWhole(_ length: Int) -> Bool {
    goesAtOnce(.push, isLarge: isLarge(length), 0)
  }

  /// Whether a message is encoded at once instead of being queued.
  @inline(__always)
  private func goesAtOnce(_ kind: FrameKind, isLarge: Bool, _ priority: UInt32) -> Bool {
    // Usually nothing is queued, and then the last check is skipped.
    !isLarge && bytes.count < encodeLimit && (kept.isEmpty || !kept.precedes(kind, priority))
  }

  @inline(__always)
  private func isLarge(_ length: Int) -> Bool { usesFragments && length > Wire.fragmentLimit }

  /// Encodes a frame without a body at once.
  package mutating func encode(_ head: FrameHead) {
    encode(head) { _ in }
  }

  /// Encodes a message now, or queues it if it is large or too many bytes wait already.
  @inline(__always)
  package mutating func append<Failure>(
    _ head: FrameHead,
    metadata: MetadataBlock?,
    priority: UInt32 = 0,
    _ body: (inout OutputRawSpan) throws(Failure) -> Void
  ) throws(Failure) -> Placement {
    // The payload alone decides, as for the water marks: metadata is no reason for fragments.
    let isLarge = isLarge(head.length - (metadata.map { 2 + $0.count } ?? 0))
    if goesAtOnce(head.kind, isLarge: isLarge, priority) {
      kept.wasPassed(by: head.length)
      return .encoded(at: try encode(head, metadata: metadata, body))
    }
    try enqueue(head, metadata, priority, isLarge: isLarge, body)
    return .queued
  }

  /// Queues a message with its own copy of the body.
  @inline(never)
  private mutating func enqueue<Failure>(
    _ head: FrameHead, _ metadata: MetadataBlock?, _ priority: UInt32, isLarge: Bool,
    _ body: (inout OutputRawSpan) throws(Failure) -> Void
  ) throws(Failure) {
    preconditionAtRest()
    anchor.setMark(true)
    defer { anchor.setMark(false) }
    let whole = try Outbox.copied(head.length, metadata, body)
    kept.insert(head, whole, priority: priority, isLarge: isLarge)
  }

  /// Returns metadata and payload in an array, which they fill exactly.
  static func copied<Failure>(
    _ count: Int, _ metadata: MetadataBlock?,
    _ body: (inout OutputRawSpan) throws(Failure) -> Void
  ) throws(Failure) -> [UInt8] {
    try [UInt8](capacity: count) { (span) throws(Failure) in
      try unsafe span.withUnsafeMutableBufferPointer { (buffer, initialized) throws(Failure) in
        // The array's free memory, which is filled before this returns.
        try unsafe Outbox.write(metadata, body, into: UnsafeMutableRawBufferPointer(buffer))
        initialized = count
      }
    }
  }

  /// Writes metadata and payload, which must fill `memory` exactly.
  @inline(__always)
  static func write<Failure>(
    _ metadata: MetadataBlock?, _ body: (inout OutputRawSpan) throws(Failure) -> Void,
    into memory: UnsafeMutableRawBufferPointer
  ) throws(Failure) {
    // The span is finalized before this returns.
    var span = unsafe OutputRawSpan(buffer: memory, initializedCount: 0)
    metadata?.encode(into: &span)
    try body(&span)
    let written = unsafe span.finalize(for: memory)
    precondition(written == memory.count, "a body is not as long as its encodedByteCount")
  }
}
