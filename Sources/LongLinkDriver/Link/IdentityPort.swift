// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
internal import LongLinkTransport

/// The commands of a link that identify its client, and that accept or refuse the client.
package struct IdentityPort {
  let link: Link

  /// Sends this client's renewed credential. The link has to be one that `canRenew`.
  package func renew(with credential: [UInt8]) {
    link.recorded(.renew, at: link.loop.now, UInt64(credential.count))
    link.command { core, now in core.renew(with: credential, at: now) }
  }

  /// Returns the credential of the client's hello or renewal, at the first call only; nil if the
  /// client has sent no hello.
  package func takeCredential() -> [UInt8]? {
    link.recorded(.takeCredential, at: link.loop.now)
    return link.note { $0.greeting?.takeCredential() }
  }

  /// Returns the `client_id` of the client's hello, at the first call only; nil without one.
  package func takeClientID() -> ClientID? {
    link.recorded(.takeClientID, at: link.loop.now)
    return link.note { $0.greeting.take()?.clientID }
  }

  /// Accepts the client, or the renewal of its credential, which expires after `expiresIn`
  /// milliseconds; 0 for never. `once` says where the client's keys are kept; nil if they are not.
  package func admit(expiresIn: UInt32, once: OnceTerms? = nil) {
    link.recorded(
      .admit, at: link.loop.now,
      numbers: [UInt64(expiresIn), UInt64(once?.retention ?? 0), once?.time ?? 0],
      bytes: once?.space.bytes ?? [])
    decide { core, now in core.admit(expiresIn: expiresIn, once: once, at: now) }
  }

  /// Refuses the client and closes, or refuses the renewal of its credential, with a reason.
  package func turnAway(_ code: ResponseCode, _ reason: String) {
    link.recorded(
      .turnAway, at: link.loop.now, numbers: [UInt64(code.rawValue)], bytes: Array(reason.utf8))
    decide { core, now in core.turnAway(code, reason, at: now) }
  }

  private func decide(_ decision: (inout Connection, LinkInstant) -> Void) {
    link.command(decision)
    link.rescheduleTimer()
  }
}
