// SPDX-License-Identifier: Apache-2.0

/// Why a client cannot send its waiting requests now. Decides which of them fail.
///
/// As long as some link takes requests, none fails. Otherwise, requests that do not wait for the
/// next attempt fail; if there will be no further attempt, all fail.
package enum Setback: Sendable, CaseIterable {
  /// The connection was lost, or no attempt has succeeded. Further attempts follow.
  case failed
  /// No attempt to connect can succeed: the servers refuse this client, or all of them speak TLS
  /// and the client does not.
  case refused
  /// Servers have refused this client over short links for good.
  case refusedOverShortLinks

  /// Whether short links can carry waiting requests.
  package enum ShortLinks: Sendable, CaseIterable {
    /// There are no short links, or requests do not take them yet.
    case unused
    /// All ways have failed, and are tried again after a pause.
    case paused
    /// Short links carry requests.
    case open
  }

  /// Which of the waiting requests fail.
  package enum Failing: Equatable, Sendable {
    case none
    /// Only requests that do not wait for a connection fail.
    case impatient
    case all
  }

  package func failing(hasLink: Bool, shortLinks: ShortLinks) -> Failing {
    if hasLink { return .none }
    return switch (self, shortLinks) {
    // The next short link would get the same answer.
    case (.refusedOverShortLinks, _), (.refused, .unused): .all
    case (.failed, .open), (.refused, .open): .none
    case (.failed, .unused), (.failed, .paused), (.refused, .paused): .impatient
    }
  }
}
