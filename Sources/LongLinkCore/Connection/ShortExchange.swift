// SPDX-License-Identifier: Apache-2.0

/// The one exchange of a short link: how far it has come.
struct ShortExchange: Equatable, Sendable {
  /// What a sender of items has in place of credit; no stream uses it up.
  static let credit = Int.max / 2

  /// The serial of the request, once its first frame has been sent or has arrived.
  var serial: UInt32?
  /// Client: whether the welcome has arrived.
  var heardWelcome = false
  /// Whether the whole response has arrived or, on a server, was handed to the outbox.
  var isAnswered = false
  /// Client: whether the request was cancelled: its bytes must not end as if they were whole.
  var isGivenUp = false
  /// Server: the features of the hello that this side lacks.
  var lacking: Features = []
  /// Server: whether the client's bytes have ended after its last frame.
  var peerHasEnded = false
}

/// The rules of a short link, which carries one exchange: a hello, one request, its items and end
/// in one direction; a welcome, items and the response in the other.
///
/// The stream below holds the sender back in place of credit, its end in good order ends each
/// direction, and its failure is the cancel. `Protocols/wire.md`, section 16, has the rules.
extension Connection {
  /// Notes that this side sends the request, of which there is but one.
  mutating func beginShort(_ serial: UInt32) {
    precondition(short?.serial == nil, "a short link carries one request")
    short?.serial = serial
  }

  /// Whether nothing of the peer is to be read any more, although the link continues: the client
  /// of a short link has ended its bytes.
  package var peerHasEnded: Bool { short?.peerHasEnded ?? false }

  /// Whether the stream is to be broken off rather than closed in good order: this side of a short
  /// link gives the exchange up.
  package var breaksOff: Bool {
    guard let short else { return false }
    return settings.role == .client ? !short.isAnswered : !hasShutDown
  }

  /// Whether this is a client that still waits for the response of a short link.
  var isShortUnanswered: Bool {
    settings.role == .client && short.map { !$0.isAnswered } ?? false
  }

  /// Those of the features that a short link can have.
  func shortFeatures(of features: Features) -> Features {
    features.intersection([.metadata, .fragments, .streams]).withNeeds
  }
}

// MARK: - Receiving

extension Connection {
  /// Throws if a frame has no place here, before its body has arrived.
  func validatePlace(_ head: FrameHead, in short: ShortExchange) throws(Violation) {
    let isRequest = head.serial == short.serial
    let fits =
      switch (head.kind, settings.role) {
      case (.hello, .server): true
      case (.request, .server):
        isOpen && (short.serial == nil || isRequest && assemblies.contains(head.serial))
      case (.item, .server), (.end, .server): isRequest
      case (.welcome, .client), (.ping, .client), (.goaway, .client): !short.isAnswered
      case (.response, .client), (.item, .client):
        short.heardWelcome && isRequest && !short.isAnswered
      default: false
      }
    guard fits else { throw Violation(.kindNotAgreed, head) }
    guard head.kind != .ping || head.length == 0 else {
      throw Violation(.sizeNotAllowed, head, value: UInt64(head.length))
    }
  }

  /// Notes a frame that is in its place.
  mutating func noteShort(_ head: FrameHead) {
    switch head.kind {
    case .request:
      short?.serial = head.serial
      timers.clear(.handshake)
    case .response where !head.flags.contains(.more):
      short?.isAnswered = true
    default:
      break
    }
  }

  /// Whether items wait for the application that fill their window: nothing more is read until it
  /// has taken some. An item that is arriving alone is read to its end.
  var holdsShortItems: Bool {
    guard !streams.isEmpty, let serial = short?.serial, let slot = streams.slot(of: serial),
      let inflow = streams[slot].incoming
    else { return false }
    return inflow.untaken > 0 && inflow.held >= inflow.window
  }

  /// Notes that a client's bytes have ended; returns false if the exchange lacks some of them.
  mutating func endsShortRequest() -> Bool {
    guard settings.role == .server, let short, let serial = short.serial,
      short.isAnswered
        || input.isEmpty && !assemblies.contains(serial) && hasAllItems(of: serial)
    else { return false }
    self.short?.peerHasEnded = true
    return true
  }

  private func hasAllItems(of serial: UInt32) -> Bool {
    streams.slot(of: serial).flatMap { streams[$0].incoming }?.hasEnded ?? true
  }

  /// Why the connection has ended if the peer gave no reason.
  var endWithoutReason: CloseReason {
    short == nil || settings.role == .server ? .closedByPeer : .noResponse
  }
}

// MARK: - Sending

extension Connection {
  /// Ends this side's bytes after its last frame.
  mutating func wroteAllOfShort() {
    guard let short, isOpen else { return }
    switch settings.role {
    case .server:
      if short.isAnswered { beginClosing(.closedHere, saying: nil) }
    case .client:
      guard let serial = short.serial, !hasShutDown, !short.isGivenUp,
        streams.slot(of: serial).flatMap({ streams[$0].outgoing })?.hasEnded ?? true
      else { return }
      hasShutDown = true
      effects.append(.shutDownWriting)
    }
  }

  /// Sends a ping that is not answered, so that proxies do not take the link for an idle one.
  mutating func pingShort() {
    guard settings.role == .server, isOpen, short?.isAnswered == false else { return }
    if outbox.isEmpty {
      outbox.encode(FrameHead(.ping, length: 0))
      counters.pingsSent += 1
    }
    timers[.heartbeat] = now + Wire.shortPingInterval
  }
}
