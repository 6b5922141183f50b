// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver

/// What became of a push to many clients: for how many connections it was queued, and how many were
/// skipped or closed. Each client counts once, with its current connection.
public struct BroadcastReport: Hashable, Sendable {
  /// Connections for which the push was queued.
  public var queued = 0
  /// Connections skipped because they were above their high-water mark.
  public var skipped = 0
  /// Connections closed because they were above their high-water mark.
  public var dropped = 0
  /// Connections skipped because they do not accept a body of this size.
  public var tooLarge = 0

  /// Makes a report whose counts are zero.
  public init() {}

  /// Adds the counts of another lane of the server.
  static func += (lhs: inout BroadcastReport, rhs: BroadcastReport) {
    lhs.queued += rhs.queued
    lhs.skipped += rhs.skipped
    lhs.dropped += rhs.dropped
    lhs.tooLarge += rhs.tooLarge
  }

  /// Counts the result of a broadcast on one connection; nil for a connection that is not open.
  mutating func count(_ placement: Broadcast.Placement?) {
    switch placement {
    case .queued: queued += 1
    case .skipped: skipped += 1
    case .dropped: dropped += 1
    case .tooLarge: tooLarge += 1
    case nil: break
    }
  }
}
