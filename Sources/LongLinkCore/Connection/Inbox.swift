// SPDX-License-Identifier: Apache-2.0

/// What has arrived on one connection: the bytes that are not processed yet, and the message that
/// was returned last, whose bytes and metadata are valid until the next one.
package struct Inbox: ~Copyable {
  /// Received bytes that are not yet processed; the driver appends to it.
  package var input = ByteQueue()
  /// The joined fragments of the last returned message.
  private(set) var assembled: [UInt8] = []
  package private(set) var metadata = MetadataMemo()

  // MARK: Bytes

  /// Passes bytes of the last returned message to `body`.
  @inline(__always)
  package func withBody<Result, Failure>(
    _ slice: BodySlice, _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let range = slice.start..<slice.start + slice.count
    guard slice.isAssembled else { return try input.withBytes(range, body) }
    return try body(unsafe assembled.span.bytes.extracting(range))
  }

  /// Passes the body of the frame that was taken last, of which none was assembled.
  func withFrame<Result>(_ slice: BodySlice, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    unsafe input.withStorage { storage in
      // It is in the input: the frame was taken, and nothing was appended since.
      unsafe body(
        UnsafeRawBufferPointer(rebasing: storage[slice.start..<slice.start + slice.count]))
    }
  }

  /// Keeps the joined fragments of a message, which is returned next.
  mutating func assemble(_ bytes: [UInt8]) -> BodySlice {
    assembled = bytes
    return BodySlice(start: 0, count: bytes.count, isAssembled: true)
  }

  /// Takes the bytes of the last returned message. Call it once: joined fragments are moved.
  mutating func takeBytes(of slice: BodySlice) -> [UInt8] {
    slice.isAssembled ? takeAssembled(slice) : withBody(slice) { [UInt8](decoding: $0) }
  }

  private mutating func takeAssembled(_ slice: BodySlice) -> [UInt8] {
    guard slice.start + slice.count == assembled.count else {
      return withBody(slice) { [UInt8](decoding: $0) }
    }
    var taken: [UInt8] = []
    swap(&taken, &assembled)
    taken.removeFirst(slice.start)
    return taken
  }

  /// Forgets what only the last returned message needed: its receiver has used or taken it.
  mutating func messageEnds() {
    if !assembled.isEmpty { assembled = [] }
    if metadata.isTooLong { forgetMetadata() }
  }

  /// Forgets the last message and its metadata, and frees their memory.
  mutating func forgetMessage() {
    assembled = []
    forgetMetadata()
  }

  /// Whether the first bytes are a record of TLS: a client's handshake, or a server's alert.
  func beginsWithTLS(of sender: Role) -> Bool {
    guard input.count >= 2 else { return false }
    let position = input.position
    return unsafe input.withStorage { storage in
      unsafe storage[position] == (sender == .client ? 0x16 : 0x15) && storage[position + 1] == 0x03
    }
  }

  // MARK: Messages

  /// Separates the metadata and payload of a complete message.
  @inline(__always)
  func arrival(_ head: FrameHead, _ body: BodySlice) throws(Violation) -> Arrival {
    guard head.flags.contains(.metadata) else {
      return Arrival(head.kind, serial: head.serial, tag: head.tag, payload: body)
    }
    let size = withBody(body) { bytes in
      unsafe bytes.withUnsafeBytes { unsafe Int($0[0]) << 8 | Int($0[1]) }
    }
    guard size + 2 <= body.count else {
      throw Violation(.metadataTooLong, head, value: UInt64(size))
    }
    var payload = body
    payload.start += size + 2
    payload.count -= size + 2
    return Arrival(
      head.kind, serial: head.serial, tag: head.tag, metadataCount: size, payload: payload)
  }

  /// Decodes the metadata of a complete message, if any, into `metadata`. It is checked even in a
  /// message that is dropped.
  @inline(__always)
  mutating func readMetadata(of message: Arrival) throws(Violation) {
    guard let slice = message.metadata else { return }
    if !slice.isAssembled, let word = input.word(at: slice.start),
      metadata.repeats(word, count: slice.count)
    {
      return
    }
    try readLongMetadata(slice, of: message)
  }

  /// The same for a block of any size.
  private mutating func readLongMetadata(
    _ slice: BodySlice, of message: Arrival
  ) throws(Violation) {
    guard !withBody(slice, { metadata.repeats($0) }) else { return }
    do throws(BodyError) {
      let isKept = slice.count <= MetadataMemo.longestBlock
      metadata = MetadataMemo(
        try withBody(slice, ReceivedMetadata.init(block:)),
        block: isKept ? withBody(slice) { [UInt8](decoding: $0) } : nil)
    } catch {
      throw Violation(.malformedControl, kind: message.kind.rawValue, serial: message.serial)
    }
  }

  /// Forgets the last metadata, and frees its memory.
  package mutating func forgetMetadata() { metadata = MetadataMemo() }

  /// Reads the body of a control message.
  func decode<Message: ControlBody>(
    _ body: BodySlice, of head: FrameHead
  ) throws(Violation) -> Message {
    do throws(BodyError) {
      return try withBody(body, Message.init(decoding:))
    } catch {
      throw Violation(.malformedControl, kind: head.kind.rawValue, serial: head.serial)
    }
  }
}
