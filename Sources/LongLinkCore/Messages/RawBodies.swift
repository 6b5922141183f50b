// SPDX-License-Identifier: Apache-2.0

/// A body of no bytes: the request or the answer that has nothing to say.
public struct EmptyBody: BodyEncodable, BodyDecodable, Hashable, Sendable {
  /// Makes the empty body.
  public init() {}

  /// Reads the empty body.
  ///
  /// Throws `.notRepresentable` where the body has bytes, since they would be lost.
  public init(decoding body: RawSpan) throws(BodyError) {
    guard body.isEmpty else {
      throw BodyError(.notRepresentable, at: 0, detail: "bytes where none were expected")
    }
  }

  /// Always 0.
  public var encodedByteCount: Int { 0 }

  /// Appends nothing.
  public func encode(into output: inout OutputRawSpan) {}
}

/// Bytes are the body as they stand.
extension [UInt8]: BodyEncodable, BodyDecodable {
  /// Copies the body.
  public init(decoding body: RawSpan) {
    self = unsafe body.withUnsafeBytes { bytes in
      // The standard library makes an array of bytes that are there in half the time that it takes
      // for one of a capacity, which asks the runtime for its type.
      guard bytes.count > 2_048 else { return unsafe [UInt8](bytes) }
      return unsafe [UInt8](unsafeUninitializedCapacity: bytes.count) { buffer, count in
        count = bytes.count
        guard let source = bytes.baseAddress, let target = buffer.baseAddress else { return }
        // The array has room for all of them, and nobody else has it yet.
        unsafe UnsafeMutableRawPointer(target).copyInPieces(from: source, byteCount: count)
      }
    }
  }

  /// True: the bytes are there.
  @inlinable public static var isMeasuredByEncoding: Bool { true }

  /// The array itself.
  @inlinable public func encodedBytes() -> [UInt8] { self }

  /// The count of the array.
  public var encodedByteCount: Int { count }

  /// Appends the bytes of the array.
  public func encode(into output: inout OutputRawSpan) {
    unsafe withUnsafeBytes { unsafe output.appendBytes($0) }
  }
}
