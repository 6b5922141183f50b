// SPDX-License-Identifier: Apache-2.0

// A server that identifies its clients does so before anything that they send is acted on. In the
// meantime nothing is read either, so that they can make it hold no more than one read.

/// What a client has shown before the server decides whether it accepts it. It is an object, since
/// a connection has it for the time of its greeting alone.
final class Greeting {
  /// The version to agree to; nil if the client has sent no hello.
  let version: UInt32?
  /// The hello's credential; nil if there was no hello.
  var credential: [UInt8]?
  let clientID: ClientID?

  init(version: UInt32? = nil, credential: [UInt8]? = nil, clientID: ClientID? = nil) {
    self.version = version
    self.credential = credential
    self.clientID = clientID
  }
}

extension Connection {
  /// Asks the owner whether it accepts the client.
  mutating func identify(_ greeting: Greeting) {
    self.greeting = greeting
    become(.identifying)
    // The owner bounds the time from here on.
    timers.clear(.handshake)
    timers.clear(.frame)
    frame.stop()
    report(.identify)
  }

  /// Returns the credential of the client's hello, once; nil if the client has sent no hello.
  package mutating func takeCredential() -> [UInt8]? {
    greeting?.credential.take()
  }

  /// Returns what names the client on all its connections, once, when the connection is open; nil
  /// if its hello has not stated it.
  package mutating func takeClientID() -> ClientID? { greeting.take()?.clientID }

  /// Accepts the client, and continues with what it has sent. Its credential expires after
  /// `expiresIn` milliseconds; 0 for never.
  package mutating func admit(expiresIn: UInt32, at now: LinkInstant) {
    self.now = max(self.now, now)
    guard phase == .identifying else { return }
    greeting?.credential = nil
    if let version = greeting?.version { welcome(version: version, expiresIn: expiresIn) }
    open()
    if carriage.timesRequest { timers[.handshake] = self.now + settings.handshakeTimeout }
  }

  /// Does not accept the client: says why, and closes.
  package mutating func turnAway(_ code: ResponseCode, _ reason: String, at now: LinkInstant) {
    self.now = max(self.now, now)
    guard phase == .identifying else { return }
    greeting = nil
    beginClosing(.notAccepted(code), saying: notice(code, reason.cutToName))
  }
}
