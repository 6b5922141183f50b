// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLinkCore
import LongLinkDriver
import LongLinkTransport

/// The renewal of a connection's credential.
extension ClientConnection {
  /// How long the server accepts the credential from now on, in nanoseconds, if it said so at
  /// `start`; nil for no end.
  func validity(since start: LinkInstant) -> Int64? {
    let expires = Int64(link.connection.agreement.credentialExpires) * 1_000_000
    return expires == 0 ? nil : max(1, expires - (core.loop.now - start))
  }

  /// Asks the application for a new credential, and renews the connection's with it.
  func renew() {
    core.withCredential { [self] result in
      // The client may have moved to another connection meanwhile.
      guard core.machine.link.isCurrent(link.id) else { return }
      switch result {
      case .success([]): core.tell(.long(.cannotRenew(link.id)))
      case .success(let credential): link.identity.renew(with: credential)
      case .failure(let failure):
        link.log(.warning, "Could not renew the credential", failure.logMetadata)
        core.tell(.long(.notRenewed(link.id, refusal: nil)))
      }
    }
  }

  /// Handles the server's answer to a renewal.
  func renewed(_ answer: RenewalAnswer) {
    guard answer.code != .ok else {
      link.log(.debug, "The credential was renewed")
      core.notifyObserver(.renewed(link.id))
      return core.tell(.long(.renewed(link.id, validity: validity(since: core.loop.now))))
    }
    let isRefusal = answer.code.deniesAccess
    link.log(
      .warning, "The server has not renewed the credential",
      ["code": "\(answer.code)", "detail": "\(PeerText(answer.reason))"])
    core.note(
      .long(.notRenewed(link.id, refusal: isRefusal ? (answer.credential, answer.code) : nil)))
    if isRefusal, core.machine.refusals.finalCode != nil {
      let reason = answer.reason.isEmpty ? "" : ": \(PeerText(answer.reason))"
      core.lastFailure = ConnectFailure(
        .goneAway(answer.code),
        detail: ConnectFailure.text(ofRefusal: answer.code, of: answer.credential) + reason,
        address: link.peer)
    }
    core.settle()
  }
}
