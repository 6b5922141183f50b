// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
import LongLinkTransport
import Testing

@testable import LongLink

/// The one mapping of a failed connect to the error of an operation that needed it.
@Suite struct ConnectFailureTests {
  private static let server = SocketAddress.ipv4(10, 0, 0, 1, port: 1)

  /// A failure, and what its error has besides the detail and the address.
  struct Row: Sendable {
    let reason: CloseReason
    var security: SecurityFailure?
    var code: LongLinkError.Code?
    var response: ResponseCode?
    var systemError: Int32?
  }

  private static let untrusted = SecurityFailure(.selfSigned, "no chain")

  @Test(arguments: [
    Row(reason: .transport(111), systemError: 111),
    Row(reason: .transport(71), security: untrusted, code: .securityFailed, systemError: 71),
    Row(reason: .securityFailed(.selfSigned), security: untrusted, code: .securityFailed),
    Row(reason: .goneAway(.unauthenticated), code: .notAccepted, response: .unauthenticated),
    Row(reason: .goneAway(.forbidden), code: .notAccepted, response: .forbidden),
    Row(reason: .goneAway(.draining)),
    Row(reason: .handshakeTimeout),
  ])
  func `a connect that failed has one error, whoever waited for it`(row: Row) {
    let failure = ConnectFailure(
      row.reason, detail: "why", address: Self.server, securityFailure: row.security)
    for code in [LongLinkError.Code.connectFailed, .notConnected] {
      let error = failure.error(code, doing: "connect", to: "example: ")
      #expect(
        error
          == LongLinkError(
            row.code ?? code, doing: "connect", detail: "example: why", peer: Self.server,
            response: row.response, systemError: row.systemError, closeReason: row.reason,
            securityFailure: row.security))
    }
    let wait = failure.waitReason
    #expect(wait.detail == "it waited for a connection: why")
    #expect(wait.peer == Self.server)
    #expect(wait.response == row.response)
    #expect(wait.systemError == row.systemError)
    #expect(wait.closeReason == row.reason)
    #expect(wait.securityFailure == row.security)
  }

  @Test func `a failure before there was a connection keeps the code of the operation`() {
    let error = ConnectFailure("lookUpFailed", detail: "no such name").error(
      .connectFailed, doing: "connect")
    #expect(error == LongLinkError(.connectFailed, doing: "connect", detail: "no such name"))
    let none = ConnectFailure.unknown.error(.notConnected, doing: "ping")
    #expect(none == LongLinkError(.notConnected, doing: "ping", detail: "no connection"))
  }
}
