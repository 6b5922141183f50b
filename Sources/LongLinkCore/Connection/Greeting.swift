// SPDX-License-Identifier: Apache-2.0

/// A client's hello until the server has accepted the client, or the renewal of its credential
/// until the server has answered; both sides have the latter. It is an object, since a connection
/// has it for that time alone.
package final class Greeting {
  /// The version to agree to; nil if the client has sent no hello.
  let version: UInt32?
  /// The credential; nil if there was no hello.
  var credential: [UInt8]?
  package let clientID: ClientID?
  /// Whether this is the renewal of a credential, on an open connection.
  let isRenewal: Bool

  init(
    version: UInt32? = nil, credential: [UInt8]? = nil, clientID: ClientID? = nil,
    isRenewal: Bool = false
  ) {
    self.isRenewal = isRenewal
    self.version = version
    self.credential = credential
    self.clientID = clientID
  }

  /// Returns the credential, at the first call only; nil if there was no hello.
  package func takeCredential() -> [UInt8]? { credential.take() }
}
