// SPDX-License-Identifier: Apache-2.0

import CLongLinkAdler32

/// The checksum of RFC 1950: it finds accidents, and nothing that somebody does on purpose.
package enum Adler32 {
  /// The checksum of `bytes` where nothing comes before them, or, given the checksum of what comes
  /// before them as `continuing`, that of both together.
  @inline(__always)
  package static func checksum(of bytes: RawSpan, continuing: UInt32 = 1) -> UInt32 {
    // The buffer is used within the closure alone.
    unsafe bytes.withUnsafeBytes { unsafe checksum(of: $0, continuing: continuing) }
  }

  /// The same for memory that the caller vouches for.
  @inline(__always)
  package static func checksum(of bytes: UnsafeRawBufferPointer, continuing: UInt32 = 1) -> UInt32 {
    // The C function reads `count` bytes from the start, and none of an empty buffer.
    unsafe cll_adler32(
      continuing,
      bytes.baseAddress?.assumingMemoryBound(to: UInt8.self),
      bytes.count
    )
  }

  /// The checksum of a frame in the native layout: of the first 12 bytes, and of the body behind
  /// the 16 of the header, all of which the caller vouches for.
  @inline(__always)
  package static func checksum(ofFrame frame: UnsafeRawPointer, bodyLength: Int) -> UInt32 {
    // The C function reads the header and `bodyLength` bytes behind it.
    unsafe cll_adler32_frame(frame.assumingMemoryBound(to: UInt8.self), bodyLength)
  }
}
