// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
package import LongLinkTransport

// The read-only properties of a link.

extension Link {
  /// Whether requests and pushes may be sent.
  package var isOpen: Bool { core.isOpen }
  /// Whether exchanges may continue: neither side is closing the connection.
  package var isLive: Bool { core.isLive }
  /// Whether the connection has ended.
  var isClosed: Bool { core.isClosed }
  /// Why the connection ends, or has ended; nil while it does not.
  var endReason: CloseReason? { core.phase.endReason }
  /// The peer's goaway: why it takes no new requests; nil while it does.
  package var peerGoAway: GoAway? { core.peerGoAway }
  var role: Role { core.settings.role }
  /// Whether this is a short link, which carries one exchange.
  package var isShort: Bool { core.settings.isShort }
  package var counters: ConnectionCounters { core.counters }

  // What the handshake agreed.
  var features: Features { core.agreement.features }
  var maxInFlight: Int { core.agreement.maxInFlight }
  var maxBody: Int { core.agreement.maxBody }
  /// How long the server accepts this client's credential, in milliseconds; 0 without an end.
  package var credentialExpires: UInt32 { core.agreement.credentialExpires }
  package var heartbeatInterval: Int64 { core.agreement.heartbeatInterval }
  /// Whether this server decides about each client.
  package var identifies: Bool { core.settings.identifies }
  /// How the transport is secured; nil for a plain one.
  package var security: ConnectionSecurity? { layer?.security }
  /// How long the peer, or a proxy in its place, asked to wait as the transport broke, in
  /// nanoseconds.
  var retryAfter: Int64? { layer?.retryAfter }
  /// Why the transport could not be secured, or is no longer secure.
  package var securityFailure: SecurityFailure? {
    layer?.securityFailure ?? LinkEnding.failure(core.phase.endReason, of: role)
  }
  /// Whether the peer's system has answered the connect.
  package var isReached: Bool { isConnected || isAlive && layer?.isHandshaking == true }
  /// The name that the peer gave itself.
  package var peerName: String { core.agreement.name }

  /// Whether the peer can be pinged; some dialects have no ping.
  package var canPing: Bool { core.framing.canProbe }
  /// The longest silence, in nanoseconds, that preceded bytes which the peer has not answered yet.
  package var silenceProbed: Int64 { core.liveness.silenceProbed }
}

extension Link {
  /// Why the link ends, for people: with the name of a short link's way, what its transport knows,
  /// and what the peer's goaway said. Call it before the link has ended, except for a failure of
  /// its security or a timeout.
  package func detail(of reason: CloseReason) -> String { ending.detail(of: reason) }

  /// What the peer's goaway gave as its reason, after a colon; empty if it gave none.
  package var farewell: String { ending.farewell }

  private var ending: LinkEnding {
    LinkEnding(
      role: role, way: way, goaway: peerGoAway, securityFailure: securityFailure,
      failureText: layer?.failureText,
      isHandshaking: endedInHandshake || isAlive && layer?.isHandshaking == true,
      handshakeLimit: .nanoseconds(core.settings.handshakeTimeout))
  }
}

// MARK: - Room

extension Link {
  /// Whether a request or push may be sent; one in fragments also needs `takesLarge`.
  package var hasRoom: Bool { core.isOpen && !core.marks.isAbove }
  /// Whether a request or push of this size may be sent on an open link.
  func hasRoom(for count: Int) -> Bool { core.marks.admits(count) }
  /// Whether a request or push in fragments may be sent.
  package var takesLarge: Bool { !core.marks.isAboveLarge }
  /// Whether the peer accepts a message of `count` bytes, metadata included.
  func accepts(bodyOf count: Int) -> Bool { core.accepts(bodyOf: count) }

  /// The number of bytes written: the stream position of the next byte.
  package var bytesWritten: UInt64 { core.outbox.written }
  /// Bytes that wait to be written.
  package var bytesUnwritten: Int { core.outbox.totalBytes }
  /// Whether no bytes wait to be written.
  package var hasWrittenAll: Bool { core.outbox.isEmpty }
  /// The first window of a stream, in bytes.
  var firstWindow: Int { core.settings.windows.first }
  var waterMarks: WaterMarks { core.settings.waterMarks }
  /// The peer's requests that are not yet answered.
  package var requestsRunning: Int { core.inbound.count }
  /// Maps the peer's count of accepted requests to the ordinal of one of this side's requests.
  func ordinal(ofAccepted accepted: UInt64) -> UInt64 {
    core.ordinals.ordinal(ofAccepted: accepted)
  }
}

// MARK: - Bodies and dialects

extension Link {
  /// Takes the body of the message that is being delivered to the owner; call it once.
  @inline(__always)
  package func takeBody(of message: Arrival) -> [UInt8] { core.takeBytes(of: message.payload) }

  /// Whether the link speaks the native protocol.
  @inline(__always)
  var isNative: Bool { core.isNative }
  /// Whether frames that a dialect has encoded, or the native protocol, are this link's.
  func speaks(_ dialect: (any DialectFraming)?) -> Bool { core.settings.dialect === dialect }
  /// What the link's dialect lets this side do; nil for the native protocol.
  var dialect: DialectFacts? { core.framing.facts }
  /// The dialect's code in the response that is being delivered to the owner; nil without a
  /// dialect.
  var dialectCode: DialectErrorCode? { core.framing.lastCode }

  /// Throws if the dialect cannot carry a body.
  @inline(__always)
  func validate(_ body: some BodyEncodable) throws(BodyError) { try core.validate(body) }

  /// Why the dialect cannot express a push, or a request, as text; nil if it can.
  func objection(toPush type: MessageType) -> String? { core.framing.objection(toPush: type) }
  func objection(toRequest type: MessageType, serial: UInt32) -> String? {
    core.framing.objection(toRequest: type, serial: serial)
  }
}
