// SPDX-License-Identifier: Apache-2.0

/// What a connection keeps for a dialect and the native protocol needs not: there the frames tell
/// it.
final class DialectState {
  /// A request of this side whose answer may still come.
  struct Asked: Equatable, Sendable {
    let type: MessageType
    /// Nobody waits for the answer any more.
    var isAbandoned = false
  }

  /// How many requests that nobody waits for are remembered. Answers to older ones, which are then
  /// unknown, fall under the dialect's rule for these.
  private static let mostAbandoned = 4096

  let framing: any DialectFraming
  let facts: DialectFacts
  var decoder: any DialectDecoding
  /// By their serials: the types of requests that were sent.
  var asked = SerialTable<Asked>()
  /// Those of them that nobody waits for, the oldest first; some may have been answered since.
  private var abandoned = Queue<UInt32>()
  /// The peer's requests that are not answered.
  var answering: TypedSerials
  var lastPing: LinkInstant
  /// The code on the wire of the response that the last effect told of.
  var code: UInt32 = 0

  init(_ framing: any DialectFraming, serialMix: UInt32, at now: LinkInstant) {
    self.framing = framing
    facts = framing.facts
    answering = TypedSerials(mix: serialMix)
    decoder = framing.makeDecoder()
    lastPing = now
  }

  /// Whether the peer answers a ping, so that it can be asked for a sign of life.
  var canProbe: Bool { facts.pingsAreAnswered }

  /// Notes that nobody waits for an answer any more.
  func abandon(_ serial: UInt32) {
    let isNew = asked.update(serial) { asked in
      defer { asked.isAbandoned = true }
      return !asked.isAbandoned
    }
    guard isNew == true else { return }
    abandoned.append(serial)
    guard abandoned.count > DialectState.mostAbandoned, let oldest = abandoned.popFirst(),
      asked[oldest]?.isAbandoned == true
    else { return }
    asked.remove(oldest)
  }

  /// Whether somebody waits for the answer to a request of this type.
  func isAwaited(_ type: MessageType) -> Bool {
    asked.keys.contains { serial in
      asked[serial].map { $0.type == type && !$0.isAbandoned } ?? false
    }
  }

  /// Puts into a response's head what the dialect needs; false where it has no word for the code.
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

  /// When the heartbeat has something to do: a side that pings does so that often, since the other
  /// may have nothing else to go by; one that does not listens for the peer's.
  func heartbeatDue(lastRead: LinkInstant, every interval: Int64) -> LinkInstant {
    if facts.sendsPings {
      return (judgesSilence ? min(lastRead, lastPing) : lastPing) + interval
    }
    return facts.peerSendsPings ? lastRead + interval : .distantFuture
  }

  /// Whether a silence tells of death: somebody owes a sign of life.
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
