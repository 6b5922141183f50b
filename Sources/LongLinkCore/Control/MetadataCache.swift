// SPDX-License-Identifier: Apache-2.0

/// An encoder of metadata that caches the last block, because most requests of a connection repeat
/// it.
@usableFromInline package struct MetadataCache {
  @usableFromInline var encodedRemaining: UInt32?
  // The parts of a short block, so that returning it counts no references.
  @usableFromInline var word: UInt64 = 0
  @usableFromInline var count: UInt8 = 0

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

extension Metadata {
  /// Returns a block with all fields.
  package func encodedBlock() throws(BodyError) -> MetadataBlock {
    MetadataBlock(try encodedBytes())
  }
}
