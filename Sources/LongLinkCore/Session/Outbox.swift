/// What waits to be written to one connection.
///
/// Frames are encoded straight into `bytes`, which leave in one write a turn. What is too large for
/// one fragment, or comes while more than `encodeLimit` bytes wait, is kept back with its own body
/// and encoded as room appears, so that control frames, small ones and more urgent ones pass it.
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
  /// The offset in the stream of the byte behind the last encoded one.
  var end: UInt64 = 0
  /// Stretches of `bytes` that were taken back and are not to be written, in order and apart.
  var holes: [Range<UInt64>] = []
  var kept: KeptBack
  private let anchor = Anchor()

  package init(dialect: SharedCodec? = nil, encodeLimit: Int = 262_144) {
    self.dialect = dialect.map(DialectOutput.init)
    self.encodeLimit = encodeLimit
    kept = KeptBack(headerLength: self.dialect?.overhead ?? NativeLayout.headerLength)
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
  package var isEmpty: Bool { bytes.isEmpty && kept.isEmpty }
  /// Whether so much waits that even small frames are kept back.
  package var isCongested: Bool { bytes.count >= encodeLimit || kept.holdsSmall }
  /// Whether anything is kept back.
  package var holdsBack: Bool { !kept.isEmpty }
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
    if let dialect {
      try encode(head, in: dialect, body)
      return begin
    }
    let length = NativeLayout.headerLength + head.length
    try bytes.append(capacity: length) { (span) throws(Failure) in
      for _ in 0..<NativeLayout.headerLength { span.append(0) }
      Outbox.append(metadata, flags: head.flags, to: &span)
      try body(&span)
      precondition(span.byteCount == length, "a body is not as long as it said it would be")
      unsafe span.withUnsafeMutableBytes { buffer, _ in
        // The span holds the whole frame, as was just checked.
        unsafe NativeLayout.seal(head, at: buffer.baseAddress!)
      }
    }
    end += UInt64(length)
    return begin
  }

  /// Appends a frame that was encoded before.
  package mutating func append(encoded frame: [UInt8]) {
    kept.wasPassed(by: frame.count)
    bytes.append(capacity: frame.count) { span in frame.encode(into: &span) }
    end += UInt64(frame.count)
  }

  /// Takes what is encoded, for a frame that goes to many.
  package mutating func takeEncoded() -> [UInt8] {
    bytes.takeAll()
  }

  /// Whether a push of this body would be encoded at once, and whole.
  func takesWhole(_ length: Int) -> Bool {
    !isLarge(length) && bytes.count < encodeLimit && !kept.precedes(.push, 0)
  }

  private func isLarge(_ length: Int) -> Bool { usesFragments && length > Wire.fragmentLimit }

  /// Encodes a frame without a body at once.
  package mutating func encode(_ head: FrameHead) {
    encode(head) { _ in }
  }

  /// Encodes a message now, or keeps it back when it is large or much is waiting already.
  package mutating func append<Failure>(
    _ head: FrameHead,
    metadata: [UInt8],
    priority: UInt32 = 0,
    _ body: (inout OutputRawSpan) throws(Failure) -> Void
  ) throws(Failure) -> Placement {
    let isLarge = isLarge(head.length)
    if !isLarge, bytes.count < encodeLimit, !kept.precedes(head.kind, priority) {
      kept.wasPassed(by: head.length)
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
    kept.insert(head, whole, priority: priority, isLarge: isLarge)
    return .queued
  }

  private static func append(
    _ metadata: [UInt8], flags: FrameFlags, to span: inout OutputRawSpan
  ) {
    guard flags.contains(.metadata) else { return }
    span.append(UInt8(truncatingIfNeeded: metadata.count >> 8))
    span.append(UInt8(truncatingIfNeeded: metadata.count))
    unsafe metadata.withUnsafeBytes { unsafe span.appendBytes($0) }
  }
}
