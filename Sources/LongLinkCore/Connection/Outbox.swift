// SPDX-License-Identifier: Apache-2.0

/// What waits to be written to one connection.
///
/// Frames are encoded straight into `bytes`, which leave in few writes a turn. What is too large
/// for one fragment, or comes while more than `encodeLimit` bytes wait, is kept back with its own
/// body and encoded as room appears, so that control frames, small ones and more urgent ones pass
/// it.
///
/// Of the bytes that stand encoded in front of a new frame, fragments of large messages are at most
/// `fragmentsAhead`: they are encoded while fewer than one fragment's bytes wait, or, when one is
/// overdue, fewer than half of `encodeLimit`.
package struct Outbox: ~Copyable {
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

  /// How frames are written in a dialect, and where requests stand; nil in the native layout.
  let dialect: DialectOutput?
  /// Whether both sides agreed to fragments.
  package var usesFragments = false
  /// Above this many encoded bytes frames are kept back.
  package var encodeLimit: Int
  /// Encoded bytes that have not been written.
  package internal(set) var bytes = ByteQueue()
  /// Frames that were encoded since something was written.
  package internal(set) var frames = 0
  /// The offset in the stream of the byte behind the last encoded one.
  var end: UInt64 = 0
  /// Stretches of `bytes` that were taken back and are not to be written, in order and apart.
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

  /// The most bytes of fragments that stand encoded in front of a new frame, with the default
  /// `encodeLimit`: two fragments of one message, and one more of a message that was overdue.
  package static let fragmentsAhead = 3 * (NativeLayout.headerLength + Wire.fragmentLimit)

  /// The offset in the stream of the first byte that has not been written.
  package var written: UInt64 { end - UInt64(bytes.count) }
  /// Bytes that can be written now.
  package var encodedBytes: Int { bytes.count }
  /// Bytes of the frames that are kept back.
  package var pendingBytes: Int { kept.bytes }
  /// Bytes of messages that go in fragments and are kept back.
  package var largeBytes: Int { kept.largeBytes }
  /// Everything that waits.
  package var totalBytes: Int { bytes.count + kept.bytes }
  /// What that takes in memory; that of few bytes is kept between writes.
  var heldBytes: Int { bytes.count + room + kept.bytes }
  /// Memory in which nothing waits, where that is more than small messages need.
  var room: Int { bytes.capacity > 4_096 ? bytes.capacity - bytes.count : 0 }
  package var isEmpty: Bool { bytes.isEmpty && kept.isEmpty }
  /// Whether so much waits that even small frames are kept back.
  package var isCongested: Bool { bytes.count >= encodeLimit || kept.holdsSmall }
  /// Whether anything is kept back.
  package var holdsBack: Bool { !kept.isEmpty }
}

extension Outbox {
  /// Encodes a frame at once, whatever waits.
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
      // The whole frame was just written but for its header.
      unsafe NativeLayout.seal(head, at: frame.baseAddress!)
    }
    end += UInt64(length)
    frames &+= 1
    return begin
  }

  /// Appends a frame that was encoded before.
  package mutating func append(encoded frame: [UInt8]) {
    preconditionAtRest()
    kept.wasPassed(by: frame.count)
    unsafe bytes.append(frame.span.bytes)
    end += UInt64(frame.count)
    frames &+= 1
  }

  /// Traps where a body that is being encoded makes its own connection send something: the frame
  /// would be written in the midst of the other, into memory that may have moved, or be kept back
  /// while the other is.
  @inline(__always)
  private func preconditionAtRest() {
    precondition(!anchor.mark, "a body must not use its connection while it is encoded")
  }

  /// Takes what is encoded, for a frame that goes to many.
  package mutating func takeEncoded() -> [UInt8] {
    bytes.takeAll()
  }

  /// Whether a push of this body would be encoded at once, and whole.
  func takesWhole(_ length: Int) -> Bool {
    goesAtOnce(.push, isLarge: isLarge(length), 0)
  }

  /// Whether a message is encoded without being kept back.
  @inline(__always)
  private func goesAtOnce(_ kind: FrameKind, isLarge: Bool, _ priority: UInt32) -> Bool {
    // Nothing is kept back as a rule, and then nothing more is looked at.
    !isLarge && bytes.count < encodeLimit && (kept.isEmpty || !kept.precedes(kind, priority))
  }

  @inline(__always)
  private func isLarge(_ length: Int) -> Bool { usesFragments && length > Wire.fragmentLimit }

  /// Encodes a frame without a body at once.
  package mutating func encode(_ head: FrameHead) {
    encode(head) { _ in }
  }

  /// Encodes a message now, or keeps it back when it is large or much is waiting already.
  @inline(__always)
  package mutating func append<Failure>(
    _ head: FrameHead,
    metadata: MetadataBlock?,
    priority: UInt32 = 0,
    _ body: (inout OutputRawSpan) throws(Failure) -> Void
  ) throws(Failure) -> Placement {
    // As for whoever waits, the payload decides: what is told besides is no reason to break it up.
    let isLarge = isLarge(head.length - (metadata.map { 2 + $0.count } ?? 0))
    if goesAtOnce(head.kind, isLarge: isLarge, priority) {
      kept.wasPassed(by: head.length)
      return .encoded(at: try encode(head, metadata: metadata, body))
    }
    try keepBack(head, metadata, priority, isLarge: isLarge, body)
    return .queued
  }

  /// Keeps a message back with a body of its own.
  @inline(never)
  private mutating func keepBack<Failure>(
    _ head: FrameHead, _ metadata: MetadataBlock?, _ priority: UInt32, isLarge: Bool,
    _ body: (inout OutputRawSpan) throws(Failure) -> Void
  ) throws(Failure) {
    preconditionAtRest()
    anchor.setMark(true)
    defer { anchor.setMark(false) }
    let whole = try [UInt8](capacity: head.length) { (span) throws(Failure) in
      try unsafe span.withUnsafeMutableBufferPointer { (buffer, count) throws(Failure) in
        // The array's own free memory, which is filled before this returns.
        try unsafe Outbox.write(metadata, body, into: UnsafeMutableRawBufferPointer(buffer))
        count = head.length
      }
    }
    kept.insert(head, whole, priority: priority, isLarge: isLarge)
  }

  /// Writes metadata and payload, which fill the memory of a body to its end.
  @inline(__always)
  private static func write<Failure>(
    _ metadata: MetadataBlock?, _ body: (inout OutputRawSpan) throws(Failure) -> Void,
    into memory: UnsafeMutableRawBufferPointer
  ) throws(Failure) {
    // The span is finished before this returns.
    var span = unsafe OutputRawSpan(buffer: memory, initializedCount: 0)
    metadata?.encode(into: &span)
    try body(&span)
    let written = unsafe span.finalize(for: memory)
    precondition(written == memory.count, "a body is not as long as it said it would be")
  }
}
