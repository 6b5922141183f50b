// SPDX-License-Identifier: Apache-2.0

/// Encodes metadata, and remembers the last: most requests of a connection say the same.
package struct MetadataCoder {
  private var encodedRemaining: UInt32?
  private var encoded = MetadataBlock.short(0, count: 0)

  package init() {}

  /// The block that tells the time that remains, in milliseconds.
  package mutating func encode(remaining: UInt32) throws(BodyError) -> MetadataBlock {
    if encodedRemaining != remaining {
      encoded = try Metadata(remaining: remaining).encodedBlock()
      encodedRemaining = remaining
    }
    return encoded
  }
}

extension Metadata {
  /// The block that says all of it.
  package func encodedBlock() throws(BodyError) -> MetadataBlock {
    MetadataBlock(try encodedBytes())
  }
}
