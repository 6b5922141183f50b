// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLinkCore
import LongLinkDriver
import LongLinkTransport

/// Who the client of a connection is.
extension ServerConnection {
  /// What the client has shown.
  var authenticationRequest: AuthenticationRequest {
    AuthenticationRequest(
      credential: link.takeCredential(), address: link.peer, security: link.security,
      isShortLink: link.isShort, isSecuredByProxy: isSecuredByProxy,
      clientName: link.connection.agreement.name)
  }

  /// Whether the connection's principal has this name, or there is none if `name` is nil. A
  /// connection never changes its principal.
  func isOf(principal name: String?) -> Bool {
    guard let own = peer.principal?.name, let name else {
      return peer.principal == nil && name == nil
    }
    return own.isSameBytes(as: name)
  }

  /// Continues with a client that `authenticate` has accepted, or whose next credential.
  func accepted(_ authentication: Authentication) {
    guard link.isAlive else { return }
    peer.identified(as: authentication.principal?.record, security: link.security)
    link.record?.principal = authentication.principal?.record
    // Zero milliseconds would mean without an end.
    let validity = authentication.validity.map { max(1_000_000, $0.clampedNanoseconds) }
    expires(after: validity)
    link.admit(expiresIn: UInt32(clamping: (validity ?? 0) / 1_000_000), once: onceTerms())
  }

  /// What the client is told about its keys, if it has asked and they are kept.
  private func onceTerms() -> OnceTerms? {
    guard link.connection.asksForOnce, !link.connection.isRenewing,
      let (client, terms) = lane.keeper?.welcome(
        principal: peer.principalRecord?.name, clientID: link.connection.clientID?.bytes,
        at: lane.loop.driver.now)
    else { return nil }
    responder.onceClient = client
    return terms
  }

  /// Says that the client is not accepted, and closes; or that its next credential is not.
  func turnAway(_ code: ResponseCode, _ reason: String) {
    guard link.isAlive else { return }
    let renews = link.connection.isRenewing
    var details: Logger.Metadata = ["code": "\(code)", "detail": "\(PeerText(reason))"]
    let name = link.connection.agreement.name
    if !name.isEmpty { details["name"] = "\(PeerText(name))" }
    link.log(
      .info, renews ? "Did not renew a client's credential" : "Did not accept a client", details)
    link.turnAway(code, reason)
    if renews { notRenewed() }
  }

  /// The function that decides has failed: the client may come back.
  func authenticationFailed(_ error: any Error) {
    link.log(.error, "authenticate has failed", ["error": "\(PeerText("\(error)"))"])
    turnAway(.draining, "the server cannot check who the client is")
  }
}
