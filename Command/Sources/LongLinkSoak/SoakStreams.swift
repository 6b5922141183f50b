// SPDX-License-Identifier: Apache-2.0

import LongLink

/// What has come over the streams of clients, and why they were opened again.
struct SoakStreams: Codable, Sendable {
  private(set) var items: UInt64 = 0
  /// Items that came again, or out of turn.
  private(set) var wrong = 0
  /// The client moved to another connection.
  private(set) var moved = 0
  /// The connection was lost, or could not be made.
  private(set) var lost = 0
  /// The handler was told that its server drains.
  private(set) var told = 0
  /// The handler was not told, or did not end.
  private(set) var cutOff = 0
  /// The client's credential had expired.
  private(set) var expired = 0
  /// The stream did not come back.
  var ended = 0

  /// The number of the last item.
  private var last: UInt64 = 0

  mutating func took(_ number: UInt64?) {
    items += 1
    if number != last + 1 { wrong += 1 }
    last = number ?? last
  }

  mutating func resumed(after error: LongLinkError?) {
    guard let error else {
      moved += 1
      return
    }
    switch error.response {
    case .draining? where error.detail.contains(SoakType.told): told += 1
    case .draining?: cutOff += 1
    case SoakType.expired?: expired += 1
    default: lost += 1
    }
  }

  static func += (lhs: inout SoakStreams, rhs: SoakStreams) {
    lhs.items += rhs.items
    lhs.wrong += rhs.wrong
    lhs.moved += rhs.moved
    lhs.lost += rhs.lost
    lhs.told += rhs.told
    lhs.cutOff += rhs.cutOff
    lhs.expired += rhs.expired
    lhs.ended += rhs.ended
  }
}
