// SPDX-License-Identifier: Apache-2.0

extension Connection {
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
}
