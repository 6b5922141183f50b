// SPDX-License-Identifier: Apache-2.0

/// Metadata as they arrived: the library's own fields, and the entries still encoded.
///
/// A block may hold thousands of entries, and few handlers ask for any. So they are checked where
/// the block is judged, at about the cost of a payload of that size, and read where they are asked
/// for.
package struct ReceivedMetadata: Equatable, Sendable {
  /// The time left, in milliseconds; 0 where the deadline has passed, nil where there is none.
  package var remaining: UInt32?
  package var priority: UInt32 = 0
  package var idempotencyKey: [UInt8] = []
  /// In milliseconds; 0 for no hint.
  package var retryAfter: UInt32 = 0
  private var hasEntries = false
  /// The whole block; empty where it has no entries.
  private var block: [UInt8] = []

  package init() {}

  /// Reads a block. Throws where any of it, an entry included, cannot be decoded.
  package init(block: RawSpan) throws(BodyError) {
    // The block is there as long as this call, and the reader is not there any longer.
    let bytes = unsafe block.withUnsafeBytes { unsafe $0.assumingMemoryBound(to: UInt8.self) }
    var reader = unsafe ProtobufReader(
      bytes, allowance: ProtobufReader.memoryLimit(forBodyOf: bytes.count))
    self = try Self.read(from: &reader)
    if hasEntries { self.block = [UInt8](decoding: block) }
  }

  /// Whether it says nothing of a request but the time that remains.
  package var isPlain: Bool { priority == 0 && idempotencyKey.isEmpty && !hasEntries }

  /// The entries by their keys, the last of each; read anew at each call.
  package var entries: [String: String] {
    guard hasEntries, let metadata = try? unsafe Metadata(decoding: block.span.bytes) else {
      return [:]
    }
    return Dictionary(metadata.entries.map { ($0.key, $0.value) }) { _, last in last }
  }
}

extension ReceivedMetadata {
  private static func read(
    from reader: inout ProtobufReader
  ) throws(BodyError) -> ReceivedMetadata {
    var value = ReceivedMetadata()
    var key = 0..<0
    while true {
      if reader.isNext(4), reader.skipOrdinaryEntries(of: 4) { value.hasEntries = true }
      guard let field = try reader.next() else { break }
      switch field {
      case 1: value.remaining = try reader.uint32()
      case 2: value.priority = try reader.uint32()
      case 3: key = try reader.bytesInPlace()
      case 4:
        value.hasEntries = true
        try reader.message(checkEntry)
      case 5: value.retryAfter = try reader.uint32()
      default: try reader.skip()
      }
    }
    // The last one counts, however many there are.
    if !key.isEmpty { value.idempotencyKey = reader.copy(key) }
    return value
  }

  /// Checks the texts of an entry, and leaves them where they are.
  private static func checkEntry(_ reader: inout ProtobufReader) throws(BodyError) {
    while let field = try reader.next() {
      switch field {
      case 1, 2: try reader.checkString()
      default: try reader.skip()
      }
    }
  }
}
