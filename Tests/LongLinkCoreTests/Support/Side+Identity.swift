// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

/// Who a client is.
extension Side {
  /// Sends the client's next credential.
  func renew(with credential: [UInt8]) {
    connection.renew(with: credential, at: now)
    drain()
  }

  /// Accepts the client that was identified, for a time in milliseconds; 0 for good.
  func admit(expiresIn: UInt32, once: OnceTerms? = nil) {
    connection.admit(expiresIn: expiresIn, once: once, at: now)
    drain()
  }

  /// Does not accept the client that was identified.
  func turnAway(_ code: ResponseCode) {
    connection.turnAway(code, "", at: now)
    drain()
  }
}
