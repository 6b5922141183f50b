// SPDX-License-Identifier: Apache-2.0

extension UnsafeMutableRawPointer {
  /// Copies bytes that do not overlap with these.
  ///
  /// Large copies are made in pieces. From 2 KiB on a C library may copy by one instruction, `rep
  /// movsb`, which AMD's Zen 3 takes up to twenty times as long for as a loop takes, where the
  /// target is not aligned (https://lunnova.dev/articles/ryzen-slow-short-rep-mov, with figures;
  /// glibc 2.36 does so). Pinned, that was a fifth of the throughput with bodies of 64 KiB.
  @inlinable @inline(__always)
  func copyInPieces(from source: UnsafeRawPointer, byteCount: Int) {
    // The caller vouches for both.
    if byteCount <= 2_048 {
      unsafe copyMemory(from: source, byteCount: byteCount)
    } else {
      unsafe copyManyPieces(from: source, byteCount: byteCount)
    }
  }

  @usableFromInline
  func copyManyPieces(from source: UnsafeRawPointer, byteCount: Int) {
    var done = 0
    while done < byteCount {
      let piece = min(byteCount - done, 2_048)
      // Within the bytes that the caller vouches for.
      unsafe (self + done).copyPiece(from: source + done, byteCount: piece)
      done += piece
    }
  }

  // A call for each, or the compiler would make one copy of them all.
  @inline(never)
  private func copyPiece(from source: UnsafeRawPointer, byteCount: Int) {
    unsafe copyMemory(from: source, byteCount: byteCount)
  }
}
