// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkSystem
internal import LongLinkCLibrary

/// A descriptor that any thread can make readable.
///
/// It stays open until the last thread that might use it has released it: a late wake-up must not
/// write into a descriptor that the system has reused.
final class Waker: Sendable {
  /// The descriptor to poll for reading.
  let readEnd: CInt
  private let writeEnd: CInt

  /// Makes an event counter if the system has them, else a pipe.
  init(preferringPipe: Bool = false) throws(Errno) {
    #if os(Linux)
    if !preferringPipe {
      readEnd = eventfd(0, CInt(cll_eventfd_flags))
      guard readEnd >= 0 else { throw Errno(errno) }
      writeEnd = readEnd
      return
    }
    #endif
    var ends: (CInt, CInt) = (-1, -1)
    let result = unsafe withUnsafeMutableBytes(of: &ends) { bytes in
      unsafe pipe(bytes.baseAddress!.assumingMemoryBound(to: CInt.self))
    }
    guard result == 0 else { throw Errno(errno) }
    (readEnd, writeEnd) = ends
    do throws(Errno) {
      try SystemCall.prepare(readEnd)
      try SystemCall.prepare(writeEnd)
    } catch {
      SystemCall.close(readEnd)
      SystemCall.close(writeEnd)
      throw error
    }
  }

  deinit {
    SystemCall.close(readEnd)
    if writeEnd != readEnd { SystemCall.close(writeEnd) }
  }

  /// Makes `readEnd` readable.
  func wake() {
    var one: UInt64 = 1
    // It fails only if so many wake-ups are pending that one more makes no difference.
    _ = unsafe write(writeEnd, &one, MemoryLayout<UInt64>.size)
  }

  /// Clears the pending wake-ups.
  func clear() {
    unsafe withUnsafeTemporaryAllocation(byteCount: 512, alignment: 8) { buffer in
      while unsafe read(readEnd, buffer.baseAddress!, buffer.count) == buffer.count {}
    }
  }
}
