// SPDX-License-Identifier: Apache-2.0

/// What has arrived on one connection: the bytes that are not processed yet, and the message that
/// was returned last, whose bytes and metadata are valid until the next one.
package struct Inbox: ~Copyable {
  /// Received bytes that are not yet processed; the driver appends to it.
  package var input = ByteQueue()
  /// The joined fragments of the last returned message.
  private(set) var assembled: [UInt8] = []
  package private(set) var metadata = MetadataMemo()
  /// The metadata of the message that was returned last, if that has any.
  package var lastMetadata: ReceivedMetadata { metadata.last }
  /// How much of the next frame has arrived.
  var frame = FrameProgress()

  // MARK: Reading

  /// Returns how many bytes to read at once, about `limit`, so that no large frame is read in part.
  package func readSize(upTo limit: Int) -> Int {
    frame.readSize(upTo: limit, present: input.count)
  }

  /// Makes room for a read of this size, and for the rest of a frame of which half has arrived.
  ///
  /// So a large frame takes no more memory than its length, and never more than twice what arrived.
  /// `spare` is an empty queue whose memory can be taken in exchange.
  package mutating func makeRoom(for readSize: Int, with spare: inout ByteQueue) {
    let rest = frame.rest(after: input.count)
    let room = max(rest ?? 0, readSize)
    if !input.makeRoom(for: room, with: &spare), rest != nil { input.reserveExactly(room) }
  }

  // MARK: Frames

  /// Whether the header of the next native frame is complete.
  var hasHead: Bool { input.count >= NativeLayout.headerLength }

  /// Reads the header of the next native frame, which is complete.
  @inline(__always)
  func head() throws(Violation) -> FrameHead {
    precondition(hasHead)
    let position = input.position
    return try unsafe input.withStorage { (storage) throws(Violation) in
      // The precondition ensures `headerLength` bytes at `position`.
      try unsafe NativeLayout.head(at: storage.baseAddress! + position)
    }
  }

  /// Whether the next native frame, with this header, is complete.
  @inline(__always)
  mutating func hasWhole(_ head: FrameHead) -> Bool {
    let length = NativeLayout.headerLength + head.length
    guard input.count < length else { return true }
    frame.expect(length)
    return false
  }

  /// Whether the checksum of the next native frame, which is complete, is right.
  @inline(__always)
  func isIntact(_ head: FrameHead) -> Bool {
    let position = input.position
    return unsafe input.withStorage { storage in
      // `hasWhole` has ensured that the whole frame is there.
      unsafe NativeLayout.isIntact(at: storage.baseAddress! + position, length: head.length)
    }
  }

  /// Takes the next native frame, which is complete, and returns its body.
  @inline(__always)
  mutating func take(_ head: FrameHead) -> BodySlice {
    let headerLength = NativeLayout.headerLength
    let body = BodySlice(start: input.position + headerLength, count: head.length)
    input.skip(headerLength + head.length)
    frame.complete(headerLength + head.length, body: head.length)
    return body
  }

  /// Takes the next frame of a dialect, or a damaged packet, and returns it with its position;
  /// never a step that skips bytes.
  mutating func next(in dialect: DialectState) -> (step: DialectStep, position: Int) {
    while true {
      let position = input.position
      var step = DialectStep.needMore(atLeast: 1)
      unsafe input.withMutableStorage { storage in
        let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: storage[position...])
        step = unsafe dialect.decoder.next(in: rest)
      }
      switch step {
      case .skipped(let count):
        input.skip(count)
        continue
      case .needMore(let wanted):
        // The length of a delimited packet is not known in advance.
        if !dialect.facts.isDelimited { frame.expect(wanted) }
      case .damaged(let count, _):
        input.skip(count)
      case .frame(let frame):
        input.skip(frame.length)
        self.frame.complete()
      case .violation: break
      }
      return (step, position)
    }
  }

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

  /// Passes the body of the frame that was taken last, which is in the input, to `body`.
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
  @inline(__always)
  package mutating func takeBytes(of slice: BodySlice) -> [UInt8] {
    slice.isAssembled ? takeAssembled(slice) : withBody(slice) { [UInt8](decoding: $0) }
  }

  private mutating func takeAssembled(_ slice: BodySlice) -> [UInt8] {
    // What is moved keeps the memory of what is before it, so that must be little.
    guard slice.start + slice.count == assembled.count, slice.start <= 64 + slice.count / 8 else {
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
    if metadata.isForgotten { forgetMetadata() }
  }

  /// Forgets the last message and its metadata, and frees their memory.
  mutating func forgetMessage() {
    assembled = []
    forgetMetadata()
  }

  /// Frees memory that is not needed between messages.
  mutating func releaseStorage() {
    input.releaseStorage(over: 0)
    forgetMessage()
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

  /// Decodes the metadata of a message, whose block can have any size, into `metadata`.
  private mutating func readLongMetadata(
    _ slice: BodySlice, of message: Arrival
  ) throws(Violation) {
    guard !withBody(slice, { metadata.repeats($0) }) else { return }
    do throws(BodyError) {
      let read = try withBody(slice, ReceivedMetadata.init(block:))
      // The metadata of requests that run once differs each time.
      if slice.count <= MetadataMemo.longestBlock, read.keySpace == nil {
        metadata.remember(read, withBody(slice) { [UInt8](decoding: $0) })
      } else {
        metadata.hold(read)
      }
    } catch {
      throw Violation(.malformedControl, kind: message.kind.rawValue, serial: message.serial)
    }
  }

  /// Forgets the last metadata, and frees its memory.
  package mutating func forgetMetadata() { metadata = MetadataMemo() }

  /// Reads the body of a grant of credit, which has four bytes.
  func credit(_ body: BodySlice, of head: FrameHead) throws(Violation) -> Int {
    let credit = withBody(body) { bytes in
      (0..<4).reduce(0) { sum, index in
        sum << 8 | Int(unsafe bytes.unsafeLoad(fromByteOffset: index, as: UInt8.self))
      }
    }
    guard (1...Wire.mostCredit).contains(credit) else {
      throw Violation(.creditNotAllowed, head, value: UInt64(credit))
    }
    return credit
  }

  /// Reads the number of a ping, which is the body of its pong; nil if the body is no number.
  func number(_ body: BodySlice) -> UInt64? {
    withBody(body) { bytes in
      guard bytes.byteCount == 8 else { return nil }
      return UInt64(bigEndian: unsafe bytes.unsafeLoadUnaligned(as: UInt64.self))
    }
  }

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
