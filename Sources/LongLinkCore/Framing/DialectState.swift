// SPDX-License-Identifier: Apache-2.0

/// The state that a connection keeps for a dialect. In the native protocol, the frames contain it.
package final class DialectState {
  /// A request of this side whose response can still arrive.
  struct Asked: Equatable, Sendable {
    let type: MessageType
    /// Whether no caller waits for the response any more.
    var isAbandoned = false
  }

  /// The number of abandoned requests that are remembered. To a response to an older one, the
  /// dialect's rule for unknown serials applies.
  private static let mostAbandoned = 4096

  let framing: any DialectFraming
  let facts: DialectFacts
  var decoder: any DialectDecoding
  /// The requests that were sent, by serial.
  var asked = SerialTable<Asked>()
  /// The abandoned requests, oldest first; some may have been answered meanwhile.
  private var abandoned = Queue<UInt32>()
  /// The peer's requests that were not answered yet.
  var answering: TypedSerials
  var lastPing: LinkInstant
  /// The wire code of the response in the last effect.
  var code: UInt32 = 0

  init(_ framing: any DialectFraming, serialMix: UInt32, at now: LinkInstant) {
    self.framing = framing
    facts = framing.facts
    answering = TypedSerials(mix: serialMix)
    decoder = framing.makeDecoder()
    lastPing = now
  }

  /// Whether the peer answers pings, so that a ping can test whether it is alive.
  var canProbe: Bool { facts.pingsAreAnswered }

  /// The meaning of a response from the peer.
  enum Match: Equatable {
    case response
    /// No request has the response's serial, and the dialect then takes it for a ping.
    case ping
    case unknown
  }

  /// Finds the request that a response to this role belongs to, and ends it. Throws if the dialect
  /// does not allow the peer to send this response.
  func match(_ frame: DialectFrame, to role: Role) throws(Violation) -> Match {
    let (kind, serial) = (FrameKind.response.rawValue, frame.head.serial)
    guard let asked = asked[serial] else {
      switch facts.unknownSerial {
      case .ping where role == .client: return .ping
      case .drop: return .unknown
      case .violation, .ping: throw Violation(.serialOutOfRange, kind: kind, serial: serial)
      }
    }
    if let type = framing.requestType(of: frame), type != asked.type {
      throw Violation(
        .typeNotAllowed, kind: kind, serial: serial, value: UInt64(frame.type),
        expected: framing.responseType(to: asked.type.rawValue))
    }
    self.asked.remove(serial)
    code = frame.code
    return .response
  }

  /// Records that no caller waits for a response any more. Returns the message type of its request;
  /// nil if no such request is known.
  func abandon(_ serial: UInt32) -> MessageType? {
    guard let type = asked[serial]?.type else { return nil }
    let isNew = asked.update(serial) { asked in
      defer { asked.isAbandoned = true }
      return !asked.isAbandoned
    }
    guard isNew == true else { return type }
    abandoned.append(serial)
    guard abandoned.count > DialectState.mostAbandoned, let oldest = abandoned.popFirst(),
      asked[oldest]?.isAbandoned == true
    else { return type }
    asked.remove(oldest)
    return type
  }

  /// Whether a request of this type can be cancelled. A cancel by type applies to all requests of
  /// that type, so none is sent while a caller waits for another such request.
  func canCancel(_ type: MessageType) -> Bool {
    framing.canSendCancel(of: type) && (!facts.cancelsByType || !isAwaited(type))
  }

  /// Whether a caller waits for the response to a request of this type.
  private func isAwaited(_ type: MessageType) -> Bool {
    asked.keys.contains { serial in
      asked[serial].map { $0.type == type && !$0.isAbandoned } ?? false
    }
  }

  /// Completes a response's head for the dialect; false if the dialect cannot express the code.
  func prepare(_ head: inout FrameHead, _ code: ResponseCode, _ ownCode: UInt32?) -> Bool {
    head.about = answering[head.serial]?.rawValue ?? 0
    let said = ownCode.map { framing.isSuccess($0) ? .ok : .failed } ?? code
    guard framing.canSendResponse(said) else { return false }
    if let ownCode, framing.canSend(code: ownCode) {
      head.tag = ownCode
      head.flags.insert(.ownCode)
    }
    return true
  }

  /// When the heartbeat is next due. A side that sends pings does so at every interval, because the
  /// peer may rely on it. A side that sends none checks for the peer's pings.
  func heartbeatDue(lastRead: LinkInstant, every interval: Int64) -> LinkInstant {
    if facts.sendsPings {
      return (judgesSilence ? min(lastRead, lastPing) : lastPing) + interval
    }
    return facts.peerSendsPings ? lastRead + interval : .distantFuture
  }

  /// Whether silence means that the peer is lost, because it has to send pings or pongs.
  var judgesSilence: Bool { facts.pingsAreAnswered || facts.peerSendsPings }

  func forgetExchanges() {
    answering.removeAll()
    asked = SerialTable()
    abandoned.removeAll()
  }

  func releaseStorage() {
    asked.releaseStorage(over: 16)
    answering.releaseStorage(over: 16)
  }
}
