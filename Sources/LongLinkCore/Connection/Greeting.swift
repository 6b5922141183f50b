// SPDX-License-Identifier: Apache-2.0

/// What a client has shown before the server decides whether it accepts it, or its next credential,
/// which the client keeps until the answer. It is an object, since a connection has it for that
/// time alone.
final class Greeting {
  /// The version to agree to; nil if the client has sent no hello.
  let version: UInt32?
  /// The credential; nil if there was no hello.
  var credential: [UInt8]?
  let clientID: ClientID?
  /// Whether it is the next credential on an open connection.
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
}
