// SPDX-License-Identifier: Apache-2.0

/// What happens to pushes that their consumer has not taken yet.
///
/// A buffer holds at most `count` pushes and at most `bytes` bytes of their bodies, though always
/// one push. `count` is at least 1 and `bytes` at least 0; anything else is a programming error.
public struct PushBuffer<Failure: Error>: Hashable, Sendable {
  let overflow: PushOverflow
  let count: Int
  let bytes: Int

  fileprivate init(_ overflow: PushOverflow, _ count: Int, _ bytes: Int) {
    precondition(count >= 1, "a buffer has room for at least one push")
    precondition(bytes >= 0, "a buffer cannot have less than no bytes")
    self.overflow = overflow
    self.count = count
    self.bytes = bytes
  }
}

/// What a full buffer does when one more push comes.
enum PushOverflow: Hashable, Sendable {
  case dropOldest
  case dropNewest
  case close
}

extension PushBuffer where Failure == Never {
  /// When one more comes to a full buffer, the oldest make room: dropped and counted.
  public static func dropOldest(_ count: Int, bytes: Int = 67_108_864) -> PushBuffer<Never> {
    PushBuffer(.dropOldest, count, bytes)
  }

  /// When one more comes to a full buffer, it is dropped and counted.
  public static func dropNewest(_ count: Int, bytes: Int = 67_108_864) -> PushBuffer<Never> {
    PushBuffer(.dropNewest, count, bytes)
  }
}

extension PushBuffer where Failure == LongLinkError {
  /// When one more comes to a full buffer, the sequence ends: what is buffered can still be taken,
  /// and then it throws `overloaded`. The push that did not fit is counted as dropped.
  public static func close(_ count: Int, bytes: Int = 67_108_864) -> PushBuffer<LongLinkError> {
    PushBuffer(.close, count, bytes)
  }
}
