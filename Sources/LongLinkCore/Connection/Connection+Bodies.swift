// SPDX-License-Identifier: Apache-2.0

// Access to the bytes of a received message, while it is valid.

extension Connection {
  /// Passes bytes of the last returned message to `body`.
  @inline(__always)
  package func withBody<Result, Failure>(
    _ slice: BodySlice, _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let range = slice.start..<slice.start + slice.count
    guard slice.isAssembled else { return try input.withBytes(range, body) }
    return try body(unsafe assembled.span.bytes.extracting(range))
  }

  /// Whether the metadata of the last returned message equals, byte by byte, the metadata of the
  /// previous call. Most messages of a connection repeat it.
  package mutating func repeatsMetadata(_ message: Arrival) -> Bool {
    guard let slice = message.metadata else { return false }
    if let lastMetadata, slice.count == lastMetadata.count {
      let isSame = withBody(slice) { bytes in
        // Metadata is short, so that a loop is faster than a call.
        for index in lastMetadata.indices {
          // In bounds: the counts are equal.
          let byte = unsafe bytes.unsafeLoad(fromUncheckedByteOffset: index, as: UInt8.self)
          if byte != lastMetadata[index] { return false }
        }
        return true
      }
      if isSame { return true }
    }
    // The remembered size is bounded: large blocks repeat less often, and cost more.
    lastMetadata =
      slice.count > Connection.longestMetadata ? nil : withBody(slice) { [UInt8](decoding: $0) }
    return false
  }

  /// The most bytes of metadata that are remembered.
  private static let longestMetadata = 1024

  /// Whether the last metadata was too long to remember; the driver then forgets it too, once it
  /// has been passed on.
  package mutating func forgetsMetadata() -> Bool {
    guard lastMetadata == nil else { return false }
    lastMetadata = []
    return true
  }

  /// Takes the bytes of the last returned message. Call it once: joined fragments are moved.
  @inline(__always)
  package mutating func takeBytes(of slice: BodySlice) -> [UInt8] {
    slice.isAssembled ? takeAssembled(slice) : withBody(slice) { [UInt8](decoding: $0) }
  }

  private mutating func takeAssembled(_ slice: BodySlice) -> [UInt8] {
    guard slice.start + slice.count == assembled.count else {
      return withBody(slice) { [UInt8](decoding: $0) }
    }
    var taken: [UInt8] = []
    swap(&taken, &assembled)
    taken.removeFirst(slice.start)
    return taken
  }
}
