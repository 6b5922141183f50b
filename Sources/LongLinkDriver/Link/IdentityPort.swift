// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
internal import LongLinkTransport

/// Who the client of a link is: what it has shown, and whether it is accepted.
package struct IdentityPort {
  let link: Link

  /// Sends this client's next credential, on a connection that `canRenew`.
  package func renew(with credential: [UInt8]) {
    link.command { core, now in core.renew(with: credential, at: now) }
  }

  /// Returns the credential of the client's hello or renewal, once; nil if the client has sent no
  /// hello.
  package func takeCredential() -> [UInt8]? { link.note { $0.takeCredential() } }

  /// Returns the `client_id` of the client's hello, once, when the link is open; nil without one.
  package func takeClientID() -> ClientID? { link.note { $0.takeClientID() } }

  /// Accepts the client that has been identified, or its next credential, which expires after
  /// `expiresIn` milliseconds; 0 for never.
  package func admit(expiresIn: UInt32) {
    decide { core, now in core.admit(expiresIn: expiresIn, at: now) }
  }

  /// Does not accept the client, and closes; or does not accept its next credential. Says why.
  package func turnAway(_ code: ResponseCode, _ reason: String) {
    decide { core, now in core.turnAway(code, reason, at: now) }
  }

  private func decide(_ decision: (inout Connection, LinkInstant) -> Void) {
    decision(&link.core, link.loop.now)
    link.settle()
    link.rescheduleTimer()
  }
}
