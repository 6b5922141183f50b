// SPDX-License-Identifier: Apache-2.0

extension WayMachine {
  /// How a short link has ended.
  package enum Outcome: Equatable, Sendable {
    /// The short link failed before its request could be written.
    case failed
    /// The request was written, and nothing came of an answer: at most the greeting and pings.
    case silent
    /// The server sent an answer, a part of one, or a goaway.
    case worked
    /// The short link was given up, and shows nothing.
    case unused
  }

  package struct Settings: Equatable, Sendable {
    /// Whether the long link is among the ways: it then is the first.
    package var hasLongLink: Bool
    /// The number of ways of short links.
    package var ways: Int
    /// The most short links at once.
    package var limit = 8
    /// How long to wait for the long link before short links are used, in nanoseconds.
    package var connectBound: Int64
    /// The pauses after all ways have failed.
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
