// SPDX-License-Identifier: Apache-2.0

package import Logging
package import LongLinkCore
internal import LongLinkTransport

extension CloseReason {
  /// The reason in words, with the system's own for an error of the socket.
  package var detail: String {
    guard case .transport(let code) = self else { return description }
    return "the connection failed: \(SocketError.text(of: code))"
  }

  /// What a log line tells of it: `reason` to search for, `detail` to read.
  package var logMetadata: Logger.Metadata {
    ["reason": "\(token)", "detail": "\(detail)"]
  }

  /// Whether it is a warning where a link ends so. What was not announced is a loss to a client,
  /// whether it comes as an end or as a reset; a server's clients go as they like.
  fileprivate func isWarning(to role: Role) -> Bool {
    switch self {
    case .violation, .heartbeatLost, .stalledPeer, .unreadOutput, .memoryLimit: true
    case .closedByPeer, .handshakeTimeout, .transport: role == .client
    case .closedHere, .goneAway, .left: false
    }
  }
}

extension Link {
  /// Logs the end of a link that was established.
  package func logEnd(_ reason: CloseReason, _ more: @autoclosure () -> Logger.Metadata = [:]) {
    let usual: Logger.Level = role == .client ? .info : .debug
    log(
      reason.isWarning(to: role) ? .warning : usual,
      role == .client ? "Disconnected" : "Connection ended",
      reason.logMetadata.merging(more()) { told, _ in told })
  }
}

extension Logger.MetadataValue {
  /// A duration in nanoseconds, as logs tell it: in whole milliseconds.
  package static func milliseconds(_ nanoseconds: Int64) -> Logger.MetadataValue {
    "\(nanoseconds / 1_000_000)"
  }
}
