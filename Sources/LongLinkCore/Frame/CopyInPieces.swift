// SPDX-License-Identifier: Apache-2.0

extension UnsafeMutableRawPointer {
  /// Copies bytes between regions that do not overlap.
  ///
  /// Large copies are made in pieces. From 2 KiB on, a C library may use one instruction, `rep
  /// movsb` (glibc 2.36 does). On AMD's Zen 3 it is up to twenty times slower than a loop if the
  /// target is not aligned (figures: https://lunnova.dev/articles/ryzen-slow-short-rep-mov). With
  /// pinned threads and bodies of 64 KiB, that cost a fifth of the throughput.
  @inlinable @inline(__always)
  func copyInPieces(from source: UnsafeRawPointer, byteCount: Int) {
    // The caller guarantees that both regions are valid.
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
      // Each piece is within the regions that the caller guarantees.
      unsafe (self + done).copyPiece(from: source + done, byteCount: piece)
      done += piece
    }
  }

  // Not inlined, or the compiler would merge the pieces into one copy.
  @inline(never)
  private func copyPiece(from source: UnsafeRawPointer, byteCount: Int) {
    unsafe copyMemory(from: source, byteCount: byteCount)
  }
}
