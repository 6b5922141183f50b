// SPDX-License-Identifier: Apache-2.0

/// Why a client cannot send its waiting requests now: decides which of them fail.
///
/// A request goes on waiting while something takes requests. If nothing does, those fail that do
/// not wait for the next attempt; if there will be none, all of them do.
package enum Setback: Sendable, CaseIterable {
  /// The connection was lost, or no attempt has succeeded. There will be others.
  case failed
  /// No attempt to connect can succeed: servers do not accept this client, or all speak TLS, which
  /// it does not.
  case refused
  /// Servers do not accept this client over short links, for good.
  case refusedOverShortLinks

  /// What short links can do for requests that wait.
  package enum ShortLinks: Sendable, CaseIterable {
    /// There are no short links, or requests do not take them yet.
    case unused
    /// All ways have failed, and are tried again after a pause.
    case paused
    /// Short links carry requests.
    case open
  }

  /// The waiting requests that fail.
  package enum Failing: Equatable, Sendable {
    case none
    /// Requests that do not wait for a connection fail.
    case impatient
    case all
  }

  package func failing(hasLink: Bool, shortLinks: ShortLinks) -> Failing {
    if hasLink { return .none }
    return switch (self, shortLinks) {
    // The answer to the next short link would be the same.
    case (.refusedOverShortLinks, _), (.refused, .unused): .all
    case (.failed, .open), (.refused, .open): .none
    case (.failed, .unused), (.failed, .paused), (.refused, .paused): .impatient
    }
  }
}
