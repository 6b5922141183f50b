// SPDX-License-Identifier: Apache-2.0

package import Logging
package import LongLinkCore
internal import LongLinkTransport

extension CloseReason {
  /// The reason as text, with the system's text for a socket error.
  package var detail: String {
    guard case .transport(let code) = self else { return description }
    return "the connection failed: \(SocketError.text(of: code))"
  }

  /// The reason's fields in a log line: `reason`, a constant to search for, and `detail`, a text.
  package var logMetadata: Logger.Metadata {
    ["reason": "\(token)", "detail": "\(detail)"]
  }

  /// Whether this reason is logged as a warning. For a client, an unannounced end or reset is a
  /// loss; for a server, it is normal that clients disconnect.
  private func isWarning(to role: Role) -> Bool {
    switch self {
    case .violation, .heartbeatLost, .stalledPeer, .unreadOutput, .memoryLimit, .cancelLimit: true
    case .closedByPeer, .noResponse, .handshakeTimeout, .transport, .securityFailed:
      role == .client
    case .closedHere, .handshakeEvicted, .notAccepted, .goneAway, .left: false
    }
  }

  /// Logs the end of a link that was established, as a warning or at the `usual` level.
  package func log(
    endOf link: Link, usual: Logger.Level = .info, _ more: @autoclosure () -> Logger.Metadata = [:]
  ) {
    let role = link.connection.settings.role
    link.log(
      isWarning(to: role) ? .warning : usual,
      role == .client ? "Disconnected" : "Connection ended", kind: .name(token),
      logMetadata.merging(["detail": "\(link.ending.detail(of: self))"]) { _, told in told }
        .merging(more()) { told, _ in told })
  }
}

extension Logger.MetadataValue {
  /// A duration in nanoseconds, logged in whole milliseconds.
  package static func milliseconds(_ nanoseconds: Int64) -> Logger.MetadataValue {
    "\(nanoseconds / 1_000_000)"
  }
}
