// SPDX-License-Identifier: Apache-2.0

import CLongLinkAdler32

/// The checksum of RFC 1950. It detects accidental damage, not tampering.
package enum Adler32 {
  /// The checksum of `bytes`, or, with the checksum of the preceding bytes as `continuing`, the
  /// checksum of both together.
  @inline(__always)
  package static func checksum(of bytes: RawSpan, continuing: UInt32 = 1) -> UInt32 {
    // The buffer is used only within the closure.
    unsafe bytes.withUnsafeBytes { unsafe checksum(of: $0, continuing: continuing) }
  }

  /// Returns the checksum of memory whose validity the caller guarantees.
  @inline(__always)
  package static func checksum(of bytes: UnsafeRawBufferPointer, continuing: UInt32 = 1) -> UInt32 {
    // The C function reads `count` bytes from the start, and nothing from an empty buffer.
    unsafe cll_adler32(
      continuing,
      bytes.baseAddress?.assumingMemoryBound(to: UInt8.self),
      bytes.count
    )
  }

  /// The checksum of a frame in the native layout: of the first 12 bytes of its 16-byte header and
  /// of the body behind it. The caller guarantees that all of these bytes can be read.
  @inline(__always)
  package static func checksum(ofFrame frame: UnsafeRawPointer, bodyLength: Int) -> UInt32 {
    // The C function reads the header and `bodyLength` bytes after it.
    unsafe cll_adler32_frame(frame.assumingMemoryBound(to: UInt8.self), bodyLength)
  }
}
