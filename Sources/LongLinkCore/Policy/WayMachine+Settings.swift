// SPDX-License-Identifier: Apache-2.0

extension WayMachine {
  /// How a short link ended, as evidence about its way.
  package enum Outcome: Equatable, Sendable {
    /// The short link failed before its request could be written.
    case failed
    /// The request was written, and no part of an answer came: at most the greeting and pings.
    case silent
    /// The server sent an answer, a part of one, or a goaway.
    case worked
    /// The short link was given up, which is no evidence.
    case unused
  }

  package struct Settings: Equatable, Sendable {
    /// Whether the long link is among the ways. It is then the first of them.
    package var hasLongLink: Bool
    /// The number of ways of short links.
    package var ways: Int
    /// The most short links at a time.
    package var limit = 8
    /// How long requests wait for the long link before they take short links, in nanoseconds.
    package var connectBound: Int64
    /// The policy for the pauses after all ways of short links have failed.
    package var reconnect: ReconnectPolicy

    package init(
      hasLongLink: Bool, ways: Int, connectBound: Int64, reconnect: ReconnectPolicy
    ) {
      self.hasLongLink = hasLongLink
      self.ways = ways
      self.connectBound = connectBound
      self.reconnect = reconnect
    }
  }
}
