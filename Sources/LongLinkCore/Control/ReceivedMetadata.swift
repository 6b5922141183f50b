// SPDX-License-Identifier: Apache-2.0

/// Received metadata: the library's own fields, with the entries still encoded.
///
/// A block can contain thousands of entries, and few handlers read any. So decoding the block only
/// checks them, at about the cost of a payload of that size; `entries` reads them on demand.
package struct ReceivedMetadata: Sendable {
  /// The remaining time in milliseconds; 0 if the deadline has passed, nil if there is none.
  package var remaining: UInt32?
  package var priority: UInt32 = 0
  /// The least time before a retry, in milliseconds; 0 for no hint.
  package var retryAfter: UInt32 = 0
  /// The first credit for items of the responder, in bytes; nil if it is to send none.
  package var credit: UInt32?
  /// Whether items of the requester follow.
  package var items = false
  /// Whether the responder ended the exchange itself: the response is not its handler's.
  package var interrupted = false
  /// The key space of a request that runs once; in a response 412, the client's own now; or nil.
  package var keySpace: KeySpace?
  /// Of a request that runs once, when it was first sent, by the clock of the key store, in
  /// milliseconds; of a response 412, that clock now. 0 for none.
  package var keyTime: UInt64 = 0
  /// Whether the response is about an earlier request with the same idempotency key.
  package var replayed = false
  private var hasEntries = false
  /// A key of 16 bytes, as most are.
  private var fixedKey: KeySpace?
  /// What few have, in one place, so that a copy is cheap.
  private var rest: Rest?

  private final class Rest: Sendable {
    /// A key of another length.
    let key: [UInt8]?
    /// The whole block; nil if it has no entries.
    let block: [UInt8]?

    init(key: [UInt8]?, block: [UInt8]?) {
      self.key = key
      self.block = block
    }
  }

  package init() {}

  /// Reads a block. Throws if any part of it, including an entry, cannot be decoded.
  package init(block: RawSpan) throws(BodyError) {
    // The block is valid during this call, and the reader does not outlive the call.
    let bytes = unsafe block.withUnsafeBytes { unsafe $0.assumingMemoryBound(to: UInt8.self) }
    var reader = unsafe ProtobufReader(control: bytes)
    let key = try read(from: &reader)
    if key.count == KeySpace.size { fixedKey = reader.keySpace(at: key.lowerBound) }
    if hasEntries || fixedKey == nil && !key.isEmpty {
      rest = Rest(
        key: fixedKey == nil && !key.isEmpty ? reader.copy(key) : nil,
        block: hasEntries ? [UInt8](decoding: block) : nil)
    }
  }

  /// Whether the metadata contains nothing about a request but the remaining time.
  package var isPlain: Bool {
    priority == 0 && fixedKey == nil && rest == nil && keySpace == nil
  }

  /// The key; nil if there is none.
  package var key: OnceKey? {
    fixedKey.map { .fixed($0.high, $0.low) } ?? rest?.key.map { .variable($0) }
  }

  /// The bytes of the key; empty if there is none.
  package var idempotencyKey: [UInt8] { key?.bytes ?? [] }

  /// The entries by key, the last of each; decoded at each access.
  package var entries: [String: String] {
    guard let block = rest?.block,
      let metadata = try? unsafe Metadata(decoding: block.span.bytes)
    else {
      return [:]
    }
    return Dictionary(metadata.entries.map { ($0.key, $0.value) }) { _, last in last }
  }
}

extension ReceivedMetadata {
  /// Reads all fields, and returns the position of the key; an empty range if there is none.
  private mutating func read(
    from reader: inout ProtobufReader
  ) throws(BodyError) -> Range<Int> {
    var key = 0..<0
    while true {
      if reader.isNext(4), reader.skipOrdinaryEntries(of: 4) { hasEntries = true }
      guard let field = try reader.next() else { break }
      switch field {
      case 1: remaining = try reader.uint32()
      case 2: priority = try reader.uint32()
      case 3: key = try reader.bytesInPlace()
      case 4:
        hasEntries = true
        try reader.message(Self.checkEntry)
      case 5: retryAfter = try reader.uint32()
      case 6: credit = try reader.uint32()
      case 7: items = try reader.bool()
      case 8: interrupted = try reader.bool()
      case 9: keySpace = try reader.keySpace()
      case 10: keyTime = try reader.uint64()
      case 11: replayed = try reader.bool()
      default: try reader.skip()
      }
    }
    // The last one counts.
    return key
  }

  /// Checks the texts of an entry without copying them.
  private static func checkEntry(_ reader: inout ProtobufReader) throws(BodyError) {
    while let field = try reader.next() {
      switch field {
      case 1, 2: try reader.checkString()
      default: try reader.skip()
      }
    }
  }
}
