// SPDX-License-Identifier: Apache-2.0

/// Received metadata: the library's own fields, with the entries still encoded.
///
/// A block can contain thousands of entries, and few handlers read any. So decoding the block only
/// checks them, at about the cost of a payload of that size; `entries` reads them on demand.
package struct ReceivedMetadata: Equatable, Sendable {
  /// The remaining time in milliseconds; 0 if the deadline has passed, nil if there is none.
  package var remaining: UInt32?
  package var priority: UInt32 = 0
  package var idempotencyKey: [UInt8] = []
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
  /// The whole block; empty if it has no entries.
  private var block: [UInt8] = []

  package init() {}

  /// Reads a block. Throws if any part of it, including an entry, cannot be decoded.
  package init(block: RawSpan) throws(BodyError) {
    // The block is valid during this call, and the reader does not outlive the call.
    let bytes = unsafe block.withUnsafeBytes { unsafe $0.assumingMemoryBound(to: UInt8.self) }
    var reader = unsafe ProtobufReader(control: bytes)
    self = try Self.read(from: &reader)
    if hasEntries { self.block = [UInt8](decoding: block) }
  }

  /// Whether the metadata contains nothing about a request but the remaining time.
  package var isPlain: Bool {
    priority == 0 && idempotencyKey.isEmpty && !hasEntries && keySpace == nil
  }

  /// The entries by key, the last of each; decoded at each access.
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
      case 6: value.credit = try reader.uint32()
      case 7: value.items = try reader.bool()
      case 8: value.interrupted = try reader.bool()
      case 9: value.keySpace = try reader.keySpace()
      case 10: value.keyTime = try reader.uint64()
      case 11: value.replayed = try reader.bool()
      default: try reader.skip()
      }
    }
    // The last one counts.
    if !key.isEmpty { value.idempotencyKey = reader.copy(key) }
    return value
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
