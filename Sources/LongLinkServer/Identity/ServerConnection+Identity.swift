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

  /// Continues with a client that `authenticate` has accepted.
  func accepted(_ authentication: Authentication) {
    guard link.isAlive else { return }
    peer.identified(as: authentication.principal?.record, security: link.security)
    link.record?.principal = authentication.principal?.record
    var milliseconds: UInt32 = 0
    if let validity = authentication.validity {
      // Zero milliseconds would mean without an end.
      let nanoseconds = max(1_000_000, validity.clampedNanoseconds)
      milliseconds = UInt32(clamping: nanoseconds / 1_000_000)
      expires(after: nanoseconds)
    }
    link.admit(expiresIn: milliseconds)
  }

  /// Says that the client is not accepted, and closes.
  func turnAway(_ code: ResponseCode, _ reason: String) {
    guard link.isAlive else { return }
    var details: Logger.Metadata = ["code": "\(code)", "detail": "\(PeerText(reason))"]
    let name = link.connection.agreement.name
    if !name.isEmpty { details["name"] = "\(PeerText(name))" }
    link.log(.info, "Did not accept a client", details)
    link.turnAway(code, reason)
  }

  /// The function that decides has failed: the client may come back.
  func authenticationFailed(_ error: any Error) {
    link.log(.error, "authenticate has failed", ["error": "\(PeerText("\(error)"))"])
    turnAway(.draining, "the server cannot check who the client is")
  }
}
