// SPDX-License-Identifier: Apache-2.0

/// The position of a request in the outgoing stream of its connection.
@usableFromInline package struct OutputPosition: Equatable, Sendable {
  /// The offset in the stream of its first byte; nil while it is queued.
  @usableFromInline package var begin: UInt64?
  /// Its number among the requests that this side began on the connection, from 1; 0 while queued.
  @usableFromInline package var ordinal: UInt64

  /// The position of a queued request.
  @inlinable package static var keptBack: OutputPosition { OutputPosition(begin: nil, ordinal: 0) }

  @inlinable package init(begin: UInt64?, ordinal: UInt64) {
    self.begin = begin
    self.ordinal = ordinal
  }
}
