// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkTransport

/// Why the last attempt to connect failed, or the last connection was lost.
///
/// It is a class because most clients have none.
final class ConnectFailure: Error {
  /// A short, stable name of the failure.
  let token: String
  let detail: String
  let address: SocketAddress?
  let systemError: Int32?
  let reason: CloseReason?
  let securityFailure: SecurityFailure?

  /// A failure before there was a connection.
  init(_ token: String, detail: String, address: SocketAddress? = nil) {
    self.token = token
    self.detail = detail
    self.address = address
    systemError = nil
    reason = nil
    securityFailure = nil
  }

  init(
    _ reason: CloseReason, detail: String, address: SocketAddress?, systemError: Int32? = nil,
    securityFailure: SecurityFailure? = nil
  ) {
    token = reason.token
    self.detail = detail
    self.address = address
    self.systemError = systemError
    self.reason = reason
    self.securityFailure = securityFailure
  }
}
