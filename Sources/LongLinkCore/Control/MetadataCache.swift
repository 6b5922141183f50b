// SPDX-License-Identifier: Apache-2.0

/// An encoder of metadata that caches the last block, because most requests of a connection repeat
/// it.
package struct MetadataCache {
  private var encodedRemaining: UInt32?
  private var encoded = MetadataBlock.short(0, count: 0)

  package init() {}

  /// Returns a block that contains only the remaining time, in milliseconds.
  package mutating func encode(remaining: UInt32) throws(BodyError) -> MetadataBlock {
    if encodedRemaining != remaining {
      encoded = try Metadata(remaining: remaining).encodedBlock()
      encodedRemaining = remaining
    }
    return encoded
  }
}

extension Metadata {
  /// Returns a block with all fields.
  package func encodedBlock() throws(BodyError) -> MetadataBlock {
    MetadataBlock(try encodedBytes())
  }
}
