// SPDX-License-Identifier: Apache-2.0

/// An empty body, for a request or response without content.
package struct EmptyBody: BodyEncodable, BodyDecodable, Hashable, Sendable {
  /// Makes the empty body.
  package init() {}

  /// Reads the empty body.
  ///
  /// Throws `.notRepresentable` if the body has bytes, because they would be lost.
  package init(decoding body: RawSpan) throws(BodyError) {
    guard body.isEmpty else {
      throw BodyError(.notRepresentable, at: 0, detail: "bytes where none were expected")
    }
  }

  /// The size of the empty body: always 0.
  package var encodedByteCount: Int { 0 }

  /// Appends nothing: the body is empty.
  package func encode(into output: inout OutputRawSpan) {}
}

/// An array of bytes is sent as the body, unchanged.
extension [UInt8]: BodyEncodable, BodyDecodable {
  /// Copies the body into an array, and takes as many bytes from `memory` as the body has. Throws
  /// like ``DecodingMemory/take(_:)``.
  public init(decoding body: RawSpan, charging memory: inout DecodingMemory) throws(BodyError) {
    try memory.take(body.byteCount)
    self.init(decoding: body)
  }

  /// Copies the body into an array.
  public init(decoding body: RawSpan) {
    self = unsafe body.withUnsafeBytes { bytes in
      // For small bodies, this initializer takes half the time of the one with a capacity, which
      // looks up the array's type in the runtime.
      guard bytes.count > 2_048 else { return unsafe [UInt8](bytes) }
      return unsafe [UInt8](unsafeUninitializedCapacity: bytes.count) { buffer, count in
        count = bytes.count
        guard let source = bytes.baseAddress, let target = buffer.baseAddress else { return }
        // The array has room for all bytes and is not shared yet.
        unsafe UnsafeMutableRawPointer(target).copyInPieces(from: source, byteCount: count)
      }
    }
  }

  /// Whether `encodedByteCount` costs as much as encoding: always true. Both are free, because the
  /// array is its own encoding.
  @inlinable public static var isMeasuredByEncoding: Bool { true }

  /// Returns the array itself, which is its own encoding.
  @inlinable public func encodedBytes() -> [UInt8] { self }

  /// The number of bytes in the array.
  public var encodedByteCount: Int { count }

  /// Appends the bytes of the array.
  @inlinable @inline(__always)
  public func encode(into output: inout OutputRawSpan) {
    unsafe withUnsafeBytes { unsafe output.appendBytes($0) }
  }
}
