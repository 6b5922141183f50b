// SPDX-License-Identifier: Apache-2.0

extension BodyEncodable {
  /// Whether `encodedByteCount` costs about as much as encoding. The default is false: a body is
  /// counted first and then encoded.
  @inlinable public static var isMeasuredByEncoding: Bool { false }

  /// Encodes the value into an array of `encodedByteCount` bytes. Throws the errors of encoding.
  @inlinable
  public func encodedBytes() throws(BodyError) -> [UInt8] {
    let count = try encodedByteCount
    // All empty arrays share their memory, and `unsafeUninitializedCapacity: 0` writes to it.
    guard count > 0 else {
      var nothing = OutputRawSpan()
      try encode(into: &nothing)
      return []
    }
    var failure: BodyError?
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initializedCount in
      // The span covers memory that the array owns; `finalize` returns how much was written.
      let raw = unsafe UnsafeMutableRawBufferPointer(
        rebasing: UnsafeMutableRawBufferPointer(buffer)[..<count]
      )
      var output = unsafe OutputRawSpan(buffer: raw, initializedCount: 0)
      do throws(BodyError) {
        try encode(into: &output)
      } catch {
        failure = error
      }
      initializedCount = unsafe output.finalize(for: raw)
    }
    if let failure { throw failure }
    return bytes
  }
}
