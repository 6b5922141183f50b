// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary

/// Random numbers of the system, which an attacker cannot guess.
///
/// They are drawn in blocks, because each draw is a system call, and each is used once. A number is
/// erased when it is taken, so that the memory tells nothing about those of the past.
struct SystemRandom: ~Copyable {
  /// The most bytes that the system gives in one call.
  private static let blockSize = 256

  private var words: [UInt64] = []
  private var left = 0

  mutating func next() -> UInt64 {
    if left == 0 { draw() }
    left -= 1
    defer { words[left] = 0 }
    return words[left]
  }

  private mutating func draw() {
    if words.isEmpty {
      words = [UInt64](repeating: 0, count: Self.blockSize / MemoryLayout<UInt64>.size)
    }
    left = words.count
    let isDrawn = unsafe words.withUnsafeMutableBytes { bytes in
      // The call fills the block, whose size is within the limit, or none of it.
      unsafe getentropy(bytes.baseAddress!, bytes.count) == 0
    }
    precondition(isDrawn, "the system has no random numbers")
  }
}
