// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

extension EventLoop {
  /// Records the links that begin on this loop from now on, in a ring of at most `bytes`; 0 for
  /// none. The first call with a size decides. Without the trait `Operations` it does nothing. Call
  /// it on the loop.
  package func record(atMost bytes: Int, bodies: Bool, as number: UInt8 = 0) {
    #if Operations
    guard recorder == nil, bytes > 0 else { return }
    recorder = Recorder(
      capacity: bytes, recordsBodies: bodies,
      epoch: driver.unixNanoseconds - driver.now.nanoseconds, loop: number)
    #endif
  }

  /// What the ring holds; nil if nothing is recorded. Call it on the loop.
  package var recorded: RecorderSnapshot? {
    #if Operations
    recorder?.snapshot()
    #else
    nil
    #endif
  }
}
