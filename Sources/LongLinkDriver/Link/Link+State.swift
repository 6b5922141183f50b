// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

// What may be asked of a link: nothing here changes it.

extension Link {
  /// Whether requests and pushes may be handed over.
  package var isOpen: Bool { core.isOpen }
  /// Whether exchanges may still go on.
  package var isLive: Bool { core.isLive }
  /// Whether nothing happens any more.
  var isClosed: Bool { core.isClosed }
  /// Why the peer takes nothing new; nil while it does.
  package var peerGoAway: GoAway? { core.peerGoAway }
  var role: Role { core.settings.role }
  package var counters: ConnectionCounters { core.counters }

  // What was agreed.
  var features: Features { core.agreement.features }
  var maxInFlight: Int { core.agreement.maxInFlight }
  var maxBody: Int { core.agreement.maxBody }
  package var heartbeatInterval: Int64 { core.agreement.heartbeatInterval }
  /// What the peer calls itself.
  package var peerName: String { core.agreement.name }

  /// Whether the peer can be asked for a sign of life.
  package var canPing: Bool { core.canPing }
  /// The longest silence before what this side wrote last, and the peer has not answered.
  package var silenceProbed: Int64 { core.silenceProbed }
}

// MARK: - Room

extension Link {
  /// Whether a request or push may be handed over, if it is not too large for `takesLarge`.
  package var hasRoom: Bool { core.isOpen && !core.isAboveMark }
  /// Whether one that goes in fragments may.
  package var takesLarge: Bool { !core.isAboveLargeMark }
  /// Whether a message of so many bytes, metadata included, is within what the peer accepts.
  func accepts(bodyOf count: Int) -> Bool { core.accepts(bodyOf: count) }

  /// Where in the stream the next byte goes that is written.
  var bytesWritten: UInt64 { core.outbox.written }
  /// Bytes that wait to be written.
  package var bytesUnwritten: Int { core.outbox.totalBytes }
  /// Whether there are none.
  package var hasWrittenAll: Bool { core.outbox.isEmpty }
  var waterMarks: WaterMarks { core.settings.waterMarks }
  /// The peer's requests that are not yet answered.
  package var requestsRunning: Int { core.requestsRunning }
  /// The place, among this side's requests, of the last one of so many that the peer accepted.
  func ordinal(ofAccepted accepted: UInt64) -> UInt64 { core.ordinal(ofAccepted: accepted) }
}

// MARK: - Bodies and dialects

extension Link {
  /// Takes the body of the message that the owner is being told of, once.
  @inline(__always)
  package func takeBody(of message: Arrival) -> [UInt8] { core.takeBytes(of: message.payload) }

  /// Whether the native protocol is spoken.
  @inline(__always)
  var isNative: Bool { core.isNative }
  /// What this side can do in the dialect that is spoken; nil for the native protocol.
  var dialect: DialectFacts? { core.dialect }
  /// What the code of the response means that the owner is being told of; nil outside of a dialect.
  var dialectCode: DialectErrorCode? { core.dialectCode }

  /// Throws where the dialect refuses a body.
  @inline(__always)
  func judge(_ body: some BodyEncodable) throws(BodyError) { try core.judge(body) }

  /// Why a request cannot be said in the dialect, for people; nil where it can.
  func objection(toRequest type: MessageType, serial: UInt32) -> String? {
    core.objection(toRequest: type, serial: serial)
  }
}
