// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Whether a thread that submits work has to wake the loop.
enum LoopSignal: UInt8, AtomicRepresentable {
  /// The loop is busy and will check the inbox before it sleeps.
  case awake
  /// The loop sleeps, or is about to.
  case asleep
  /// There is work in the inbox, and the loop has been notified.
  case called
}
