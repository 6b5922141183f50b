// SPDX-License-Identifier: Apache-2.0

/// How far the writers of streams can run ahead of their readers on one connection, in bytes. Each
/// item, or fragment of one, counts as its size plus 16.
public struct StreamWindows: Hashable, Sendable {
  /// The initial window of a stream: the bytes that the peer can send before this side reads. It
  /// stays this size while the reader is slower than the network. From 1,024 to `total`. Default
  /// 65,536.
  public var first = 65_536
  /// The size up to which the window of a stream grows while its reader waits for the network.
  /// From `first` to 2,147,483,647. Default 4 MiB.
  public var largest = 4_194_304
  /// The most bytes that the windows of all streams may have together, at least `first`. Default 16
  /// MiB.
  ///
  /// A request of the peer whose items do not fit is refused with 429; a stream of this side fails
  /// with `overloaded`. The rest of an item that is larger than its window can take up to
  /// `limits.maxBody` more than this.
  public var total = 16_777_216

  /// Makes windows of the default sizes.
  public init() {}
}
