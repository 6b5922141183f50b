// SPDX-License-Identifier: Apache-2.0

// What messages carry, while they can be read.

extension Connection {
  /// Lends the bytes of a message that was told of last.
  @inline(__always)
  package func withBody<Result, Failure>(
    _ slice: BodySlice, _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let range = slice.start..<slice.start + slice.count
    guard slice.isAssembled else { return try input.withBytes(range, body) }
    return try body(unsafe assembled.span.bytes.extracting(range))
  }

  /// Whether the metadata of the message that was told of last is, byte by byte, that of the last
  /// one of which this was asked; most of a connection say the same.
  package mutating func repeatsMetadata(_ message: Arrival) -> Bool {
    guard let slice = message.metadata else { return false }
    if let lastMetadata, slice.count == lastMetadata.count {
      let isSame = withBody(slice) { bytes in
        // They are few: a loop is done before anything else has begun.
        for index in lastMetadata.indices {
          // There are as many, as was just checked.
          let byte = unsafe bytes.unsafeLoad(fromUncheckedByteOffset: index, as: UInt8.self)
          if byte != lastMetadata[index] { return false }
        }
        return true
      }
      if isSame { return true }
    }
    // What is remembered of a connection is bounded: large blocks repeat less, and cost more.
    lastMetadata =
      slice.count > Connection.longestMetadata ? nil : withBody(slice) { [UInt8](decoding: $0) }
    return false
  }

  /// The most bytes of metadata that are remembered.
  private static let longestMetadata = 1024

  /// Whether the metadata that was asked about last was too long to remember: once it has been
  /// handed on, the driver forgets it as well.
  package mutating func forgetsMetadata() -> Bool {
    guard lastMetadata == nil else { return false }
    lastMetadata = []
    return true
  }

  /// Takes the bytes of a message that was told of last, once: joined fragments are not copied.
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
