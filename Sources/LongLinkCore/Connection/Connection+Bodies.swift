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
