// SPDX-License-Identifier: Apache-2.0

/// The size of a sequence's buffer, and what happens when it is full.
///
/// A buffer holds at most `count` pushes and at most `bytes` bytes of their bodies (default
/// 64 MiB), but always at least one push. `count` must be at least 1 and `bytes` at least 0;
/// anything else traps.
public struct PushBuffer<Failure: Error>: Hashable, Sendable {
  let overflow: PushOverflow
  let count: Int
  let bytes: Int

  fileprivate init(_ overflow: PushOverflow, _ count: Int, _ bytes: Int) {
    precondition(count >= 1, "a buffer must have room for at least one push")
    precondition(bytes >= 0, "a buffer's size in bytes is at least 0")
    self.overflow = overflow
    self.count = count
    self.bytes = bytes
  }
}

/// What a full buffer does when another push comes.
enum PushOverflow: Hashable, Sendable {
  case dropOldest
  case dropNewest
  case close
}

extension PushBuffer where Failure == Never {
  /// A buffer of `count` pushes with `bytes` bytes of bodies (default 64 MiB). When it is full, it
  /// drops and counts the oldest. Traps if `count` is below 1 or `bytes` negative.
  public static func dropOldest(_ count: Int, bytes: Int = 67_108_864) -> PushBuffer<Never> {
    PushBuffer(.dropOldest, count, bytes)
  }

  /// A buffer of `count` pushes with `bytes` bytes of bodies (default 64 MiB). When it is full, it
  /// drops and counts the new push. Traps if `count` is below 1 or `bytes` negative.
  public static func dropNewest(_ count: Int, bytes: Int = 67_108_864) -> PushBuffer<Never> {
    PushBuffer(.dropNewest, count, bytes)
  }
}

extension PushBuffer where Failure == LongLinkError {
  /// A buffer of `count` pushes with `bytes` bytes of bodies (default 64 MiB). When it is full, the
  /// sequence ends: it throws `overloaded` after the buffered pushes, and the push that did not fit
  /// is counted as dropped. Traps if `count` is below 1 or `bytes` negative.
  public static func close(_ count: Int, bytes: Int = 67_108_864) -> PushBuffer<LongLinkError> {
    PushBuffer(.close, count, bytes)
  }
}
