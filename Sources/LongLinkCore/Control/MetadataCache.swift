// SPDX-License-Identifier: Apache-2.0

/// An encoder of metadata that caches the last block, because most requests of a connection repeat
/// it.
@usableFromInline package struct MetadataCache {
  @usableFromInline var encodedRemaining: UInt32?
  // The parts of a short block, so that returning it counts no references.
  @usableFromInline var word: UInt64 = 0
  @usableFromInline var count: UInt8 = 0
  /// Memory for the blocks of requests that run once, which differ each time.
  @usableFromInline var buffer: [UInt8] = []

  package init() {}

  /// Returns a block that contains only the remaining time, in milliseconds.
  @inlinable @inline(__always)
  package mutating func encode(remaining: UInt32) throws(BodyError) -> MetadataBlock {
    if encodedRemaining != remaining { try renew(remaining: remaining) }
    return .short(word, count: count)
  }

  @usableFromInline mutating func renew(remaining: UInt32) throws(BodyError) {
    guard case .short(let word, let count) = try Metadata(remaining: remaining).encodedBlock()
    else { preconditionFailure("the remaining time alone takes at most six bytes") }
    (self.word, self.count) = (word, count)
    encodedRemaining = remaining
  }
}

extension MetadataCache {
  /// Returns a block that contains the remaining time, in milliseconds, and what a request that
  /// runs once states.
  package mutating func encode(_ once: OnceStatement, remaining: UInt32?) -> MetadataBlock {
    var writer = ProtobufWriter(reusing: &buffer)
    if let remaining { writer.present(1, UInt64(remaining)) }
    switch once.key {
    case .fixed(let high, let low): writer.halves(3, high, low)
    case .variable(let bytes): writer.bytes(3, bytes)
    }
    writer.halves(9, once.space.high, once.space.low)
    writer.uint64(10, once.time)
    // Its memory is used again when the block has been encoded.
    buffer = writer.bytes
    return .long(buffer)
  }
}

extension Metadata {
  /// States what a request that runs once says in each attempt.
  package mutating func state(_ once: OnceStatement) {
    idempotencyKey = once.key.bytes
    keySpace = once.space
    keyTime = once.time
  }

  /// Returns a block with all fields.
  package func encodedBlock() throws(BodyError) -> MetadataBlock {
    MetadataBlock(try encodedBytes())
  }
}
