/// What waits to be written to one connection.
///
/// Frames are encoded straight into `bytes`, which leave in one write a turn. What is too large for
/// one fragment, or comes while more than `highWater` bytes wait, is kept back with its own body
/// and encoded as room appears, so that control frames and small ones pass it.
package struct Outbox: Equatable, Sendable {
  /// A frame that is not yet encoded, or not yet to its end.
  private struct Pending: Equatable, Sendable {
    var head: FrameHead
    var body: [UInt8]
    var sent = 0
  }

  /// Where a frame went.
  package enum Placement: Equatable, Sendable {
    /// Its first byte has this offset in the stream.
    case encoded(at: UInt64)
    /// It is kept back; an event will tell when it begins.
    case queued
  }

  /// What came of keeping a frame back.
  package enum Event: Equatable, Sendable {
    /// The first byte has been encoded, at this offset in the stream.
    case began(FrameKind, serial: UInt32, at: UInt64)
    /// The last byte has been encoded.
    case finished(FrameKind, serial: UInt32)
  }

  /// What a withdrawal found.
  package enum Withdrawal: Equatable, Sendable {
    /// No byte of the frame had left, and none will.
    case unsent
    /// Some fragments had been encoded; no more follow.
    case partial
    /// The frame has been written, or is not known.
    case tooLate
  }

  package let layout: FrameLayout
  /// Whether both sides agreed to fragments.
  package var usesFragments = false
  /// Above this many encoded bytes frames are kept back.
  package var highWater: Int
  /// Encoded bytes that have not been written.
  private(set) var bytes = ByteQueue()
  /// The offset in the stream of the byte behind the last encoded one.
  private(set) var end: UInt64 = 0
  /// Stretches of `bytes` that were taken back and are not to be written, in order.
  private var holes: [Range<UInt64>] = []
  private var queued = Queue<Pending>()
  private var bulk = Queue<Pending>()
  /// Pushes that wait for the one in `bulk`: they share a serial, so their fragments must not mix.
  private var heldPushes = Queue<Pending>()
  private var hasBulkPush = false
  /// Bytes of the frames that are kept back.
  package private(set) var pendingBytes = 0

  package init(layout: FrameLayout = .native, highWater: Int = 262_144) {
    self.layout = layout
    self.highWater = highWater
  }

  /// The offset in the stream of the first byte that has not been written.
  package var written: UInt64 { end - UInt64(bytes.count) }
  /// Bytes that can be written now.
  package var encodedBytes: Int { bytes.count }
  /// Everything that waits.
  package var totalBytes: Int { bytes.count + pendingBytes }
  package var isEmpty: Bool { bytes.isEmpty && queued.isEmpty && bulk.isEmpty }
  /// Whether so much waits that even small frames are kept back.
  package var isCongested: Bool { bytes.count >= highWater || !queued.isEmpty }
  /// Whether anything is kept back.
  package var holdsBack: Bool { !queued.isEmpty || !bulk.isEmpty }
}

extension Outbox {
  /// Encodes a frame at once, whatever waits.
  @discardableResult
  package mutating func encode<Failure>(
    _ head: FrameHead,
    metadata: [UInt8] = [],
    _ body: (inout OutputRawSpan) throws(Failure) -> Void
  ) throws(Failure) -> UInt64 {
    let begin = end
    let length = layout.headerLength + head.length
    try bytes.append(capacity: length) { (span) throws(Failure) in
      for _ in 0..<layout.headerLength { span.append(0) }
      Outbox.append(metadata, flags: head.flags, to: &span)
      try body(&span)
      precondition(span.byteCount == length, "a body is not as long as it said it would be")
      unsafe span.withUnsafeMutableBytes { buffer, _ in
        // The span holds the whole frame, as was just checked.
        unsafe layout.seal(head, at: buffer.baseAddress!)
      }
    }
    end += UInt64(length)
    return begin
  }

  /// Appends a frame that was encoded before.
  package mutating func append(encoded frame: [UInt8]) {
    bytes.append(capacity: frame.count) { span in frame.encode(into: &span) }
    end += UInt64(frame.count)
  }

  /// Takes what is encoded, for a frame that goes to many.
  package mutating func takeEncoded() -> [UInt8] {
    bytes.takeAll()
  }

  /// Whether a push of this body would be encoded at once, and whole.
  func takesWhole(_ length: Int) -> Bool {
    !(usesFragments && length > Wire.fragmentLimit) && bytes.count < highWater && queued.isEmpty
      && !hasBulkPush
  }

  /// Encodes a frame without a body at once.
  package mutating func encode(_ head: FrameHead) {
    encode(head) { _ in }
  }

  /// Encodes a message now, or keeps it back when it is large or much is waiting already.
  package mutating func append<Failure>(
    _ head: FrameHead,
    metadata: [UInt8],
    _ body: (inout OutputRawSpan) throws(Failure) -> Void
  ) throws(Failure) -> Placement {
    let isBulk = usesFragments && head.length > Wire.fragmentLimit
    let isHeld = hasBulkPush && head.kind == .push
    if !isBulk, !isHeld, bytes.count < highWater, queued.isEmpty {
      return .encoded(at: try encode(head, metadata: metadata, body))
    }
    let whole = try [UInt8](capacity: head.length) { (span) throws(Failure) in
      try unsafe span.withUnsafeMutableBufferPointer { (buffer, count) throws(Failure) in
        // The raw span covers the array's own free memory and is finished before this returns.
        let memory = UnsafeMutableRawBufferPointer(buffer)
        var raw = unsafe OutputRawSpan(buffer: memory, initializedCount: 0)
        Outbox.append(metadata, flags: head.flags, to: &raw)
        try body(&raw)
        precondition(raw.byteCount == head.length, "a body is not as long as it said")
        count = unsafe raw.finalize(for: memory)
      }
    }
    pendingBytes += layout.headerLength + whole.count
    let pending = Pending(head: head, body: whole)
    if isHeld { heldPushes.append(pending) } else { keepBack(pending) }
    return .queued
  }

  private mutating func keepBack(_ pending: Pending) {
    guard usesFragments, pending.body.count > Wire.fragmentLimit else {
      queued.append(pending)
      return
    }
    if pending.head.kind == .push { hasBulkPush = true }
    bulk.append(pending)
  }

  /// The push that was in `bulk` has been encoded to its end: those behind it have their turn.
  private mutating func releasePushes() {
    hasBulkPush = false
    while !hasBulkPush, let pending = heldPushes.popFirst() { keepBack(pending) }
  }

  private static func append(
    _ metadata: [UInt8], flags: FrameFlags, to span: inout OutputRawSpan
  ) {
    guard flags.contains(.metadata) else { return }
    span.append(UInt8(truncatingIfNeeded: metadata.count >> 8))
    span.append(UInt8(truncatingIfNeeded: metadata.count))
    unsafe metadata.withUnsafeBytes { unsafe span.appendBytes($0) }
  }

  /// Encodes what was kept back, as far as there is room for it.
  package mutating func refill(_ report: (Event) -> Void) {
    while holdsBack, bytes.count < highWater / 2 {
      if let pending = queued.popFirst() {
        encodeRest(of: pending, report)
      } else if var pending = bulk.popFirst() {
        if usesFragments, pending.body.count - pending.sent > Wire.fragmentLimit {
          encodeFragment(of: &pending, report)
          bulk.append(pending)
        } else {
          encodeRest(of: pending, report)
          if pending.head.kind == .push { releasePushes() }
        }
      }
    }
  }

  private mutating func encodeFragment(of pending: inout Pending, _ report: (Event) -> Void) {
    var head = pending.head
    head.length = Wire.fragmentLimit
    head.flags.insert(.more)
    if pending.sent > 0 { head.flags.remove(.metadata) }
    encodePiece(of: pending, head, report)
    pending.sent += head.length
    pendingBytes -= head.length
  }

  private mutating func encodeRest(of pending: Pending, _ report: (Event) -> Void) {
    var head = pending.head
    head.length = pending.body.count - pending.sent
    if pending.sent > 0 { head.flags.remove(.metadata) }
    encodePiece(of: pending, head, report)
    pendingBytes -= layout.headerLength + head.length
    report(.finished(head.kind, serial: head.serial))
  }

  private mutating func encodePiece(
    of pending: Pending, _ head: FrameHead, _ report: (Event) -> Void
  ) {
    let range = pending.sent..<pending.sent + head.length
    // The metadata block already stands at the front of the kept body.
    let begin = end
    let length = layout.headerLength + head.length
    bytes.append(capacity: length) { span in
      for _ in 0..<layout.headerLength { span.append(0) }
      unsafe pending.body.withUnsafeBytes { buffer in
        unsafe span.appendBytes(UnsafeRawBufferPointer(rebasing: buffer[range]))
      }
      unsafe span.withUnsafeMutableBytes { buffer, _ in
        // The span holds the header's room and the whole piece.
        unsafe layout.seal(head, at: buffer.baseAddress!)
      }
    }
    end += UInt64(length)
    if pending.sent == 0 { report(.began(head.kind, serial: head.serial, at: begin)) }
  }
}

extension Outbox {
  /// Lends the bytes to write next, in one piece.
  ///
  /// It is mutating only so that an outbox which a class holds is used in place and not copied.
  package mutating func withChunk<Result, Failure>(
    _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let limit = holes.first.map { Int($0.lowerBound - written) } ?? bytes.count
    let start = bytes.position
    return try unsafe bytes.withStorage { (storage) throws(Failure) in
      // `start + limit` is within the storage: holes lie behind `written` and before `end`.
      let chunk = unsafe UnsafeRawBufferPointer(rebasing: storage[start..<start + limit])
      return try body(unsafe RawSpan(_unsafeBytes: chunk))
    }
  }

  /// Notes that the first `count` bytes of the chunk have been written.
  package mutating func wrote(_ count: Int) {
    bytes.removeFirst(count)
    skipHoles()
  }

  private mutating func skipHoles() {
    while let hole = holes.first, hole.lowerBound == written {
      bytes.removeFirst(hole.count)
      holes.removeFirst()
    }
  }

  /// Takes a message back: one kept back, or one that begins at `begin` and of which no byte left.
  package mutating func withdraw(
    _ kind: FrameKind, serial: UInt32, encodedAt begin: UInt64?
  ) -> Withdrawal {
    let matches = { (pending: Pending) in
      pending.head.serial == serial && pending.head.kind == kind
    }
    if holdsBack, let pending = queued.remove(where: matches) ?? bulk.remove(where: matches) {
      pendingBytes -= layout.headerLength + pending.body.count - pending.sent
      return pending.sent == 0 ? .unsent : .partial
    }
    guard let begin, begin >= written, begin < end, !holes.contains(where: { $0.contains(begin) })
    else { return .tooLate }
    var offset = begin
    // A message of several fragments stands among other frames; all of its own are taken out.
    while offset < end, let head = encodedHead(at: offset) {
      let next = offset + UInt64(layout.headerLength + head.length)
      let isOwn = head.serial == serial && head.kind == kind
      if isOwn {
        let index = holes.firstIndex { $0.lowerBound > offset } ?? holes.count
        holes.insert(offset..<next, at: index)
      }
      if isOwn, !head.flags.contains(.more) { break }
      if offset == begin, !isOwn { return .tooLate }
      offset = next
    }
    skipHoles()
    return .unsent
  }

  private func encodedHead(at offset: UInt64) -> FrameHead? {
    let start = bytes.position + Int(offset - written)
    return unsafe bytes.withStorage { storage in
      // A frame of ours stands here whole: it was encoded at `offset` and not written.
      try? unsafe layout.head(at: storage.baseAddress! + start)
    }
  }

  /// Drops what was kept back; what is encoded stays.
  package mutating func dropPending() {
    queued.removeAll()
    bulk.removeAll()
    heldPushes.removeAll()
    hasBulkPush = false
    pendingBytes = 0
  }

  /// Gives memory back that an idle connection does not need.
  package mutating func releaseStorage() {
    bytes.releaseStorage(over: 1024)
  }
}
