// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLinkCore
import LongLinkDriver
import LongLinkTransport

/// The identity of a connection's client.
extension ServerConnection {
  /// The client's evidence, for the `authenticate` function.
  var authenticationRequest: AuthenticationRequest {
    AuthenticationRequest(
      credential: link.identity.takeCredential(), address: link.peer, security: link.security,
      isShortLink: link.connection.settings.isShort, isSecuredByProxy: isSecuredByProxy,
      clientName: link.connection.agreement.name)
  }

  /// Whether the connection's principal has this name; with nil, whether it has no principal. The
  /// principal of a connection never changes.
  func isOf(principal name: String?) -> Bool {
    guard let own = peer.principal?.name, let name else {
      return peer.principal == nil && name == nil
    }
    return own.isSameBytes(as: name)
  }

  /// Continues after `authenticate` has accepted the client, or the renewal of its credential.
  func accepted(_ authentication: Authentication) {
    guard link.isAlive else { return }
    peer.identified(as: authentication.principal?.record, security: link.security)
    link.record?.principal = authentication.principal?.record
    // On the wire, zero milliseconds would mean no end.
    let validity = authentication.validity.map { max(1_000_000, $0.clampedNanoseconds) }
    expires(after: validity)
    link.identity.admit(
      expiresIn: UInt32(clamping: (validity ?? 0) / 1_000_000), once: onceTerms())
  }

  /// What the client is told about its keys; nil if it has not asked, or none are kept.
  private func onceTerms() -> OnceTerms? {
    guard link.connection.asksForOnce, !link.connection.isRenewing,
      let (client, terms) = lane.keeper?.welcome(
        principal: peer.principalRecord?.name, clientID: link.connection.greeting?.clientID?.bytes,
        at: lane.loop.driver.now)
    else { return nil }
    responder.onceClient = client
    return terms
  }

  /// Refuses the client and closes the connection; or refuses the renewal of its credential.
  func turnAway(_ code: ResponseCode, _ reason: String) {
    guard link.isAlive else { return }
    let renews = link.connection.isRenewing
    var details: Logger.Metadata = ["code": "\(code)", "detail": "\(PeerText(reason))"]
    let name = link.connection.agreement.name
    if !name.isEmpty { details["name"] = "\(PeerText(name))" }
    link.log(
      .info, renews ? "Did not renew a client's credential" : "Did not accept a client", details)
    link.identity.turnAway(code, reason)
    if renews { notRenewed() }
  }

  /// Answers 503, because `authenticate` has failed: the client may come back.
  func authenticationFailed(_ error: any Error) {
    link.log(.error, "authenticate has failed", ["error": "\(PeerText("\(error)"))"])
    turnAway(.draining, "the server cannot check who the client is")
  }
}
