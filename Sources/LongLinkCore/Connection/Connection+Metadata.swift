// SPDX-License-Identifier: Apache-2.0

extension Connection {
  /// The most bytes of metadata that are remembered.
  private static let longestBlock = 1024

  /// Decodes the metadata of a complete message, if any, into `lastMetadata`. It is checked even in
  /// a message that is dropped.
  @inline(__always)
  mutating func readMetadata(of message: Arrival) throws(Violation) {
    guard let slice = message.metadata, !repeatsLast(slice) else { return }
    do throws(BodyError) {
      lastMetadata = try withBody(slice, ReceivedMetadata.init(block:))
    } catch {
      throw Violation(.malformedControl, kind: message.kind.rawValue, serial: message.serial)
    }
  }

  /// Whether a block equals the last one, byte by byte. Most messages of a connection repeat it.
  @inline(__always)
  private mutating func repeatsLast(_ slice: BodySlice) -> Bool {
    if !slice.isAssembled, let word = input.word(at: slice.start),
      lastBlock.isShort(word, count: slice.count)
    {
      return true
    }
    return repeatsAny(slice)
  }

  /// The same for a block of any size; remembers one that does not.
  private mutating func repeatsAny(_ slice: BodySlice) -> Bool {
    // The remembered size is bounded: large blocks repeat less often, and cost more.
    guard slice.count <= Connection.longestBlock else {
      lastBlock.forget()
      return false
    }
    if withBody(slice, lastBlock.isEqual) { return true }
    lastBlock = LastBlock(withBody(slice) { [UInt8](decoding: $0) })
    return false
  }

  /// Forgets metadata that was too long to remember, once its message has been passed on.
  mutating func forgetLongMetadata() {
    if !lastBlock.isRemembered { forgetMetadata() }
  }

  /// Forgets the last metadata, and frees its memory.
  package mutating func forgetMetadata() {
    lastMetadata = ReceivedMetadata()
    lastBlock = LastBlock()
  }
}

/// The last metadata of a connection, encoded, to recognise when it is repeated.
struct LastBlock {
  /// Its bytes; nil if they were too many to remember.
  private var bytes: [UInt8]? = []
  /// The same as a number, the first byte in its lowest bits, and which bits count. None do if the
  /// block is longer than eight bytes, or not remembered, and then the count is -1.
  private var word: UInt64 = 0
  private var mask: UInt64 = 0
  private var shortCount = 0

  init() {}

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    guard bytes.count <= 8 else {
      shortCount = -1
      return
    }
    shortCount = bytes.count
    for byte in bytes.reversed() {
      word = word << 8 | UInt64(byte)
      mask = mask << 8 | 0xFF
    }
  }

  var isRemembered: Bool { bytes != nil }

  mutating func forget() {
    bytes = nil
    shortCount = -1
  }

  /// Whether a short block of this size is equal, which is read in one piece with what follows it.
  @inline(__always)
  func isShort(_ word: UInt64, count: Int) -> Bool {
    count == shortCount && (word ^ self.word) & mask == 0
  }

  /// Whether a block is equal.
  func isEqual(_ block: RawSpan) -> Bool {
    guard let bytes, block.byteCount == bytes.count else { return false }
    for index in bytes.indices {
      // In bounds: the counts are equal.
      let byte = unsafe block.unsafeLoad(fromUncheckedByteOffset: index, as: UInt8.self)
      if byte != bytes[index] { return false }
    }
    return true
  }
}
