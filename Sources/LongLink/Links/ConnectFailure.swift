// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLinkCore
import LongLinkDriver
import LongLinkTransport

/// Why the last attempt to connect failed, or the last connection was lost.
///
/// It is a class because most clients have none.
final class ConnectFailure: Error {
  /// A short, stable name of the failure.
  let token: String
  let detail: String
  let address: SocketAddress?
  let reason: CloseReason?
  let securityFailure: SecurityFailure?
  /// What the link has recorded; nil if nothing was, or there was no link.
  let recording: LinkRecording?

  /// The failure of a client that has not failed yet.
  static let unknown = ConnectFailure("unknown", detail: "no connection")

  /// Makes a failure that happened before there was a connection.
  init(_ token: String, detail: String, address: SocketAddress? = nil) {
    self.token = token
    self.detail = detail
    self.address = address
    reason = nil
    securityFailure = nil
    recording = nil
  }

  init(
    _ reason: CloseReason, detail: String, address: SocketAddress?,
    securityFailure: SecurityFailure? = nil, recording: LinkRecording? = nil
  ) {
    self.recording = recording
    token = reason.token
    self.detail = detail
    self.address = address
    self.reason = reason
    self.securityFailure = securityFailure
  }

  /// Makes the failure of a link that has ended, or whose server is going away.
  convenience init(of link: Link, _ reason: CloseReason) {
    self.init(
      reason, detail: link.ending.detail(of: reason), address: link.peer,
      recording: link.recording)
  }

  private var systemError: Int32? {
    if case .transport(let code) = reason { code } else { nil }
  }

  /// The code with which the server refused the client; nil if it did not.
  private var response: ResponseCode? {
    if case .goneAway(let code) = reason, code.deniesAccess { code } else { nil }
  }

  /// The failure's entries in the log.
  var logMetadata: Logger.Metadata { ["reason": "\(token)", "detail": "\(detail)"] }
}

// MARK: - What becomes of it

extension ConnectFailure {
  /// Returns the error of an operation that needs a connection. `code` applies if the failure is
  /// neither a refusal nor one of security.
  func error(
    _ code: LongLinkError.Code, doing operation: LongLinkError.Operation, to server: String = ""
  ) -> LongLinkError {
    LongLinkError(
      securityFailure != nil ? .securityFailed : response != nil ? .notAccepted : code,
      doing: operation, detail: server + detail, peer: address, response: response,
      systemError: systemError, closeReason: reason, securityFailure: securityFailure
    ).with(recording)
  }

  /// The reason for the error of a request that has waited until its deadline.
  var waitReason: WaitReason {
    WaitReason(
      "it waited for a connection: \(detail)", peer: address, systemError: systemError,
      securityFailure: securityFailure, response: response, closeReason: reason,
      recording: recording)
  }
}
