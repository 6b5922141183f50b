// SPDX-License-Identifier: Apache-2.0

/// What carries the frames of a connection: a long link, or a short one.
///
/// A short link carries one exchange: a hello, one request, its items and end in one direction; a
/// welcome, items and the response in the other. The transport holds the sender back in place of
/// credit, its end in good order ends each direction, and its failure is the cancel.
/// `Protocols/wire.md`, section 16, has the rules. The connection asks here wherever the two
/// differ, as it asks `Framing` about dialects.
package struct Carriage: Equatable, Sendable {
  /// How far the one exchange of a short link has come.
  private struct Exchange: Equatable, Sendable {
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

  private let role: Role
  /// Nil on a long link.
  private var exchange: Exchange?

  init(_ role: Role, isShort: Bool) {
    self.role = role
    exchange = isShort ? Exchange() : nil
  }

  /// Whether the connection is a short link.
  var isShort: Bool { exchange != nil }

  /// The serial of the one request, if it has begun; nil on a long link.
  var serial: UInt32? { exchange?.serial }

  /// Whether a request may begin.
  var takesRequest: Bool { exchange == nil || exchange?.serial == nil }

  /// Whether the whole response has passed; false on a long link.
  var isAnswered: Bool { exchange?.isAnswered ?? false }

  /// Whether this is a client that still waits for the one response.
  var awaitsAnswer: Bool { role == .client && exchange?.isAnswered == false }

  /// Whether nothing of the peer is to be read any more, although the link continues: the client
  /// has ended its bytes.
  package var peerHasEnded: Bool { exchange?.peerHasEnded ?? false }
}

// MARK: - Constant differences

extension Carriage {
  /// Whether credit holds the senders of items back, and not the transport alone.
  var usesCredit: Bool { exchange == nil }

  /// The first credit of a sender of items to whom the peer has granted this much. On a short link,
  /// it is more than any stream uses.
  func firstCredit(of granted: Int) -> Int { usesCredit ? granted : Int.max / 2 }

  /// Whether pings are answered, so that they show whether the peer is alive.
  var hasHeartbeat: Bool { exchange == nil }

  /// When a ping is due that the peer does not answer: it tells proxies that a short link is not
  /// idle.
  func signOfLifeDue(at now: LinkInstant) -> LinkInstant {
    role == .server ? now + Wire.shortPingInterval : .distantFuture
  }

  /// Whether there are frames that cancel a request. The end of a short link cancels its own.
  var hasCancels: Bool { exchange == nil }

  /// Whether the peer learns with a goaway that this side takes no more requests. On a short link,
  /// that is said only when the link ends.
  var announcesLeaving: Bool { exchange == nil }

  /// Whether this side tells the peer of its violation. The server of a short link has nothing more
  /// to say to a client, whose request cannot take anything back.
  var tellsViolations: Bool { exchange == nil || role == .server }

  /// Why the connection has ended if the peer gave no reason.
  var endWithoutReason: CloseReason {
    exchange == nil || role == .server ? .closedByPeer : .noResponse
  }
}

// MARK: - Greeting

extension Carriage {
  /// The features that hold from a client's hello on, so that its request need not wait for the
  /// welcome; nil on a long link, where it has to wait.
  func featuresWithHello(of own: Features) -> Features? {
    exchange == nil ? nil : Carriage.shortFeatures(of: own)
  }

  /// Returns the features that hold for a server that supports `own`. On a short link all features
  /// of the hello hold, and the request is refused if the server lacks one of them.
  mutating func agree(on offered: Features, of own: Features) -> Features {
    let agreed = own.intersection(offered).withNeeds
    guard exchange != nil else { return agreed }
    let features = Carriage.shortFeatures(of: offered)
    exchange?.lacking = features.subtracting(agreed)
    return features
  }

  /// Returns the given features without those that a short link cannot have.
  private static func shortFeatures(of features: Features) -> Features {
    features.subtracting(.renewal).intersection(.supported).withNeeds
  }

  /// The features of the hello that this server lacks.
  var lacking: Features { exchange?.lacking ?? [] }

  /// Whether this server lacks a feature that any request may need, not only those that run once.
  var refusesAll: Bool { !lacking.subtracting(.once).isEmpty }

  /// Notes that this server does not keep the keys of this client. Returns true on a short link,
  /// where the features of the hello hold nevertheless, and the request is refused.
  mutating func lacksOnce() -> Bool {
    exchange?.lacking.insert(.once)
    return exchange != nil
  }

  /// Whether a client awaits the welcome: on a short link, also after the connection has opened.
  func awaitsWelcome(isFresh: Bool) -> Bool { exchange.map { !$0.heardWelcome } ?? isFresh }

  /// Notes that the welcome has arrived.
  mutating func welcomed() { exchange?.heardWelcome = true }

  /// Whether the time for the handshake goes on until the one request has begun.
  var timesRequest: Bool { role == .server && exchange != nil && exchange?.serial == nil }
}

// MARK: - The exchange

extension Carriage {
  /// Notes that this side sends a request: on a short link, the only one.
  mutating func sends(_ serial: UInt32) {
    guard exchange != nil else { return }
    precondition(takesRequest, "a short link carries one request")
    exchange?.serial = serial
  }

  /// Throws if a frame has no place on a short link that is open, or has begun to collect the
  /// request; before its body has arrived.
  func validate(_ head: FrameHead, isOpen: Bool, isCollecting: Bool) throws(Violation) {
    guard let exchange else { return }
    let isRequest = head.serial == exchange.serial
    let fits =
      switch (head.kind, role) {
      case (.hello, .server): true
      case (.request, .server): isOpen && (exchange.serial == nil || isRequest && isCollecting)
      case (.item, .server), (.end, .server): isRequest
      case (.welcome, .client), (.ping, .client), (.goaway, .client): !exchange.isAnswered
      case (.response, .client), (.item, .client):
        exchange.heardWelcome && isRequest && !exchange.isAnswered
      default: false
      }
    guard fits else { throw Violation(.kindNotAgreed, head) }
    guard head.kind != .ping || head.length == 0 else {
      throw Violation(.sizeNotAllowed, head, value: UInt64(head.length))
    }
  }

  /// Notes a frame that is in its place.
  mutating func received(_ head: FrameHead) {
    switch head.kind {
    case .request: exchange?.serial = head.serial
    case .response where !head.flags.contains(.more): exchange?.isAnswered = true
    default: break
    }
  }

  /// Notes that the response was handed to the outbox.
  mutating func answered() { exchange?.isAnswered = true }

  /// Notes that this side's request was cancelled.
  mutating func gaveUp() { exchange?.isGivenUp = true }
}

// MARK: - Ends

extension Carriage {
  /// Notes that the peer's bytes have ended; `isWhole` tells whether its request is complete.
  /// Returns false if the link has to end, too.
  mutating func peerEnds(isWhole: Bool) -> Bool {
    guard role == .server, let exchange, exchange.serial != nil, exchange.isAnswered || isWhole
    else { return false }
    self.exchange?.peerHasEnded = true
    return true
  }

  /// What ends once all output is written.
  enum End: Equatable {
    case nothing
    /// The bytes of the client, whose request is complete.
    case writing
    /// The link of a server that has answered.
    case link
  }

  /// What ends now that all output is written; `sentItems` tells whether this side's items ended.
  func end(sentItems: Bool) -> End {
    guard let exchange else { return .nothing }
    switch role {
    case .server: return exchange.isAnswered ? .link : .nothing
    case .client:
      return exchange.serial != nil && !exchange.isGivenUp && sentItems ? .writing : .nothing
    }
  }

  /// Whether the transport is to be broken off rather than closed in good order: this side gives
  /// the exchange up.
  func breaksOff(hasShutDown: Bool) -> Bool {
    guard let exchange else { return false }
    return role == .client ? !exchange.isAnswered : !hasShutDown
  }
}
