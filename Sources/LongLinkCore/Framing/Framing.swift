// SPDX-License-Identifier: Apache-2.0

/// The layout of a connection's frames: native, or a dialect's.
///
/// Most rules that differ in a dialect are in Connection+Dialect and Outbox+Dialect. Other files
/// ask for `dialect`, or `isNative`, where a line or two differ.
/// A dialect has no handshake and no goaway; a response may have to repeat the type of its request;
/// and a ping can remain unanswered.
package enum Framing {
  /// The layout of `Protocols/wire.md`.
  case native
  /// A dialect, with its state for this connection.
  case dialect(DialectState)

  init(_ framing: (any DialectFraming)?, serialMix: UInt32, at now: LinkInstant) {
    self =
      framing.map { .dialect(DialectState($0, serialMix: serialMix, at: now)) } ?? .native
  }

  /// The state for a dialect; nil in the native protocol.
  @inline(__always)
  var dialect: DialectState? {
    if case .dialect(let state) = self { state } else { nil }
  }

  /// Whether the native protocol is spoken, which has frames about the connection itself: hello,
  /// welcome and goaway.
  @inline(__always)
  package var isNative: Bool {
    // Without a copy of the state, which every message would count.
    if case .native = self { true } else { false }
  }

  /// Throws if a body contains the delimiter and the dialect forbids that.
  @inline(__always)
  package func validate(_ body: some BodyEncodable) throws(BodyError) {
    if let dialect { try dialect.framing.validate(body) }
  }

  /// Whether the peer answers pings, so that a ping can test whether it is alive.
  package var canProbe: Bool { dialect?.canProbe ?? true }

  /// What this side can do in its dialect; nil for the native protocol.
  package var facts: DialectFacts? { dialect?.facts }

  /// The last response's code, and that code as text; nil in the native protocol.
  package var lastCode: (number: UInt32, text: String)? {
    guard let dialect, dialect.facts.hasCodes else { return nil }
    return (dialect.code, dialect.framing.summary(of: dialect.code))
  }

  /// A readable explanation why a request cannot have this type; nil if it can.
  package func objection(toRequest type: MessageType, serial: UInt32) -> String? {
    guard let dialect, !dialect.framing.canSendRequest(type, serial: serial) else { return nil }
    return "a request cannot have type \(type) in \(dialect.facts.name)"
  }

  /// A readable explanation why a push cannot have this type; nil if it can.
  package func objection(toPush type: MessageType) -> String? {
    dialect?.framing.objection(toPush: type)
  }

  /// The largest body of a frame in a dialect; nil in the native protocol, which negotiates it.
  var maximumBody: Int? { dialect?.facts.maximumBody }

  /// Whether the decoder is searching for the next frame, so that the waiting bytes are not part of
  /// one.
  var isLost: Bool { dialect?.decoder.isLost ?? false }

  /// Whether a request of this side can have this serial.
  @inline(__always)
  func owns(_ serial: UInt32, as role: Role) -> Bool {
    if let dialect { return dialect.facts.serials?.contains(serial) == true }
    return role.owns(serial)
  }
}

// MARK: - Requests in flight

extension Framing {
  /// Records that this side sent a request.
  @inline(__always)
  func asked(_ serial: UInt32, _ type: MessageType) {
    dialect?.asked[serial] = DialectState.Asked(type: type)
  }

  /// Records that this side withdrew a request before any byte of it was sent.
  @inline(__always)
  func withdrew(_ serial: UInt32) {
    dialect?.asked.remove(serial)
  }

  /// Records that a request of the peer needs no response any more.
  @inline(__always)
  func answered(_ serial: UInt32) {
    dialect?.answering.remove(serial)
  }

  /// Forgets all requests in flight, because the connection ends.
  func forgetExchanges() {
    dialect?.forgetExchanges()
  }

  func releaseStorage() {
    dialect?.releaseStorage()
  }
}
