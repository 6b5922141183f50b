// SPDX-License-Identifier: Apache-2.0

/// How a connection's frames are laid out, and what follows from that: the one place where the
/// native protocol and a dialect are told apart.
///
/// In a dialect there is no handshake and nobody goes away with a word; a response may have to name
/// the type of its request; and a ping may go unanswered.
enum Framing {
  /// The layout of `Protocols/wire.md`.
  case native
  /// A dialect, with what is kept for it on this connection.
  case dialect(DialectState)

  init(_ framing: (any DialectFraming)?, serialMix: UInt32, at now: LinkInstant) {
    self =
      framing.map { .dialect(DialectState($0, serialMix: serialMix, at: now)) } ?? .native
  }

  /// What is kept for a dialect; nil in the native protocol.
  @inline(__always)
  var dialect: DialectState? {
    if case .dialect(let state) = self { state } else { nil }
  }

  /// Whether there are frames about the connection itself: hello, welcome and goaway.
  @inline(__always)
  var hasControlFrames: Bool { dialect == nil }

  /// Whether the peer answers a ping, so that it can be asked for a sign of life.
  var canProbe: Bool { dialect?.canProbe ?? true }

  /// The largest body of a frame, where that is not agreed on.
  var maximumBody: Int? { dialect?.facts.maximumBody }

  /// Whether the beginning of the next frame is looked for, so that what waits is no part of one.
  var isLost: Bool { dialect?.decoder.isLost ?? false }

  /// Whether a side's request may bear a serial.
  @inline(__always)
  func owns(_ serial: UInt32, as role: Role) -> Bool {
    if let dialect { return dialect.facts.serials?.contains(serial) == true }
    return role.owns(serial)
  }
}

// MARK: - What is on its way

extension Framing {
  /// A request of this side was handed over.
  @inline(__always)
  func asked(_ serial: UInt32, _ type: MessageType) {
    dialect?.asked[serial] = DialectState.Asked(type: type)
  }

  /// A request of this side was taken back before a byte of it left.
  @inline(__always)
  func withdrew(_ serial: UInt32) {
    dialect?.asked.remove(serial)
  }

  /// A request of the peer needs no answer any more.
  @inline(__always)
  func answered(_ serial: UInt32) {
    dialect?.answering.remove(serial)
  }

  /// The connection ends, and with it all that was on its way.
  func forgetExchanges() {
    dialect?.forgetExchanges()
  }

  func releaseStorage() {
    dialect?.releaseStorage()
  }
}
