// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
import LongLinkTransport

extension ConnectFailure {
  /// Explains a refusal in place of a welcome to a client that showed a credential, or none if it
  /// is empty.
  static func text(ofRefusal code: ResponseCode, of credential: [UInt8]) -> String {
    switch code {
    case .unauthenticated:
      credential.isEmpty
        ? "the server did not accept this client, which has no `identity.credential` (401)"
        : "the server did not accept the credential (401)"
    case .forbidden: "the server does not allow this client to connect (403)"
    case .draining: "the server is draining, and takes no new clients (503)"
    default: CloseReason.text(ofGoaway: code, from: "server")
    }
  }

  static func unencryptedCredential(for address: SocketAddress?, way: String?) -> ConnectFailure {
    ConnectFailure(
      "credentialUnencrypted",
      detail: """
        \(way.map { "\($0): " } ?? "")the credential would be sent without encryption: use \
        \(way == nil ? "`security`" : "https"), or allow it with \
        `identity.sendsCredentialUnencrypted`
        """, address: address)
  }
}
