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
}

extension Logger.MetadataValue {
  /// A duration in nanoseconds, as logs tell it: in whole milliseconds.
  package static func milliseconds(_ nanoseconds: Int64) -> Logger.MetadataValue {
    "\(nanoseconds / 1_000_000)"
  }
}
