// SPDX-License-Identifier: Apache-2.0

/// Why a connection ended, as two numbers of an event. The first is the kind, and the second its
/// value; `Protocols/recording.md` lists the kinds.
package enum RecordedReason {
  /// The numbers for a reason.
  package static func encode(_ reason: CloseReason) -> (kind: UInt64, value: UInt64) {
    switch reason {
    case .violation(let violation): (1, index(of: violation.rule, in: Violation.Rule.allCases))
    case .closedByPeer: (2, 0)
    case .noResponse: (3, 0)
    case .heartbeatLost: (4, 0)
    case .handshakeTimeout: (5, 0)
    case .stalledPeer: (6, 0)
    case .unreadOutput: (7, 0)
    case .memoryLimit: (8, 0)
    case .cancelLimit: (9, 0)
    case .handshakeEvicted: (10, 0)
    case .transport(let errno): (11, UInt64(UInt32(bitPattern: errno)))
    case .securityFailed(let code): (12, index(of: code, in: SecurityFailure.Code.allCases))
    case .notAccepted(let code): (13, UInt64(code.rawValue))
    case .goneAway(let code): (14, UInt64(code.rawValue))
    case .closedHere: (15, 0)
    case .left: (16, 0)
    }
  }

  /// The reason of these numbers; nil if there is none. A violation has no more than its rule.
  package static func decode(kind: UInt64, value: UInt64) -> CloseReason? {
    let code = ResponseCode(rawValue: UInt32(clamping: value))
    switch kind {
    case 1: return element(value, of: Violation.Rule.allCases).map { .violation(Violation($0)) }
    case 2: return .closedByPeer
    case 3: return .noResponse
    case 4: return .heartbeatLost
    case 5: return .handshakeTimeout
    case 6: return .stalledPeer
    case 7: return .unreadOutput
    case 8: return .memoryLimit
    case 9: return .cancelLimit
    case 10: return .handshakeEvicted
    case 11: return .transport(Int32(truncatingIfNeeded: value))
    case 12: return element(value, of: SecurityFailure.Code.allCases).map { .securityFailed($0) }
    case 13: return code.map { .notAccepted($0) }
    case 14: return code.map { .goneAway($0) }
    case 15: return .closedHere
    case 16: return .left
    default: return nil
    }
  }

  private static func index<Element: Equatable>(of element: Element, in all: [Element]) -> UInt64 {
    all.firstIndex(of: element).map { UInt64($0) } ?? .max
  }

  private static func element<Element>(_ index: UInt64, of all: [Element]) -> Element? {
    index < UInt64(all.count) ? all[Int(index)] : nil
  }
}

/// What a core has decided, as numbers of the event `effect`.
package enum RecordedEffect {
  /// The numbers for an effect: its kind, two values, and how many frames were accepted before.
  package static func encode(_ effect: Effect, frames: UInt64) -> [UInt64] {
    func numbers(_ kind: UInt64, _ first: UInt64 = 0, _ second: UInt64 = 0) -> [UInt64] {
      [kind, first, second, frames]
    }
    func ended(_ kind: UInt64, _ reason: CloseReason) -> [UInt64] {
      let reason = RecordedReason.encode(reason)
      return numbers(kind, reason.kind, reason.value)
    }
    switch effect {
    case .message(let message):
      return numbers(1, UInt64(message.kind.rawValue), UInt64(message.serial))
    case .shutDownWriting: return numbers(2)
    case .close(let reason): return ended(3, reason)
    case .report(.life(.abandon(let reason))): return ended(4, reason)
    case .report(.life(.established)): return numbers(5)
    case .report(.life(.peerLeaving(let goaway))): return numbers(6, UInt64(goaway.code))
    case .report(.life(.renewed(let answer))): return numbers(7, UInt64(answer.code.rawValue))
    case .report(.request(.collect(let serial))): return numbers(8, UInt64(serial))
    case .report(.request(.began(let serial, _, let ordinal))):
      return numbers(9, UInt64(serial), ordinal)
    case .report(.request(.finished(let serial))): return numbers(10, UInt64(serial))
    case .report(.request(.stray(let kind, let serial))):
      return numbers(11, UInt64(serial), UInt64(kind.rawValue))
    case .report(.stream(.itemSent, let serial)): return numbers(12, UInt64(serial))
    case .report(.stream(.stuck, let serial)): return numbers(13, UInt64(serial))
    case .report(.stream(.overLimit, let serial)): return numbers(14, UInt64(serial))
    case .report(.observed(.ponged(let id, let time))):
      return numbers(15, id, UInt64(bitPattern: time))
    case .report(.observed(.heartbeatAnswered(let silence))):
      return numbers(16, UInt64(bitPattern: silence))
    case .report(.observed(.damaged)): return numbers(17)
    case .report(.observed(.refused(let type, let serial, let refusal))):
      return numbers(18, UInt64(serial), RecordedNumber.pair(type, refusal.code.rawValue))
    case .report(.identify): return numbers(19)
    case .report(.cancel(let id)): return numbers(20, UInt64(id.serial), UInt64(id.number))
    case .report(.resumeSending): return numbers(21)
    }
  }

  /// The names of the kinds, from 1.
  package static let names = [
    "message", "shutDownWriting", "close", "abandon", "established", "peerLeaving", "renewed",
    "collect", "began", "finished", "stray", "itemSent", "stuck", "overLimit", "ponged",
    "heartbeatAnswered", "damaged", "refused", "identify", "cancel", "resumeSending",
  ]
}
