// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// What a number of an event means, as `Protocols/recording.md` has it.
enum RecordedForm {
  case number(String)
  case signed(String)
  /// A number plus 1; 0 for none.
  case optional(String)
  /// Two numbers of 32 bits.
  case pair(String, String)
  /// A serial, and the type of the message.
  case serialAndType
  /// The type of a message, and its priority.
  case typeAndPriority
  case type
  /// A number of 32 bits, and flags.
  case flagged(String)
  /// The bytes of a body and of its metadata.
  case sizes
  /// The bytes of a body.
  case size
  /// A reason, in two numbers.
  case reason

  /// Takes the numbers, and returns the values that have something to say.
  func values(
    of numbers: inout ArraySlice<UInt64>, _ names: [UInt32: String]
  ) -> RecordedStep.Values {
    guard let number = numbers.popFirst() else { return [] }
    let (low, high) = RecordedNumber.pair(number)
    func small(_ name: String, _ value: UInt32) -> (String, RecordedStep.Value) {
      (name, .number(UInt64(value)))
    }
    switch self {
    case .number(let name): return [(name, .number(number))]
    case .signed(let name): return [(name, .signed(Int64(bitPattern: number)))]
    case .optional(let name): return number == 0 ? [] : [(name, .number(number - 1))]
    case .pair(let first, let second): return [small(first, low), small(second, high)]
    case .serialAndType: return [small("serial", low), ("type", RecordedStep.type(high, names))]
    case .typeAndPriority:
      return [("type", RecordedStep.type(low, names)), small("priority", high)]
    case .type: return [("type", RecordedStep.type(UInt32(clamping: number), names))]
    case .flagged(let name): return [small(name, low)] + Self.flags(high)
    case .sizes:
      let (count, metadata) = RecordedNumber.sizes(number)
      return [("body", .number(UInt64(count)))]
        + (metadata.map { [("metadata", .number(UInt64($0)))] } ?? [])
    case .size:
      return [("body", .number(number & 0xFF_FFFF_FFFF))]
        + Self.flags(UInt32(truncatingIfNeeded: number >> 40))
    case .reason: return Self.reason(number, numbers.popFirst() ?? 0)
    }
  }

  private static func flags(_ bits: UInt32) -> RecordedStep.Values {
    let known: [(RecordedFlags, String)] = [
      (.failed, "failed"), (.sendsItems, "sends_items"), (.isRefused, "refused"),
      (.isInterrupting, "interrupting"), (.hasOwnCode, "own_code"), (.isNotifying, "notifying"),
    ]
    let flags = RecordedFlags(rawValue: bits)
    return known.filter { flags.contains($0.0) }.map { ($0.1, .number(1)) }
  }

  static func reason(_ kind: UInt64, _ value: UInt64) -> RecordedStep.Values {
    guard let reason = RecordedReason.decode(kind: kind, value: value) else {
      return [("reason_kind", .number(kind)), ("reason_value", .number(value))]
    }
    let rule: RecordedStep.Values =
      if case .violation(let violation) = reason {
        [("violation", .text(violation.rule.rawValue))]
      } else {
        []
      }
    return [("cause", .text(reason.token))] + rule
      + [("text", .text(PeerText("\(reason)").description))]
  }
}

extension RecordedEvent {
  /// What its numbers mean, in their order.
  var forms: [RecordedForm] {
    switch self {
    case .names, .connected, .receivedPart, .resumedReading, .ping, .slowed, .takeCredential,
      .takeClientID, .evict, .handlersHadTurn, .handlersTurnEnds, .receivedMore, .wroteMore,
      .leave, .effect:
      []
    case .began: [.number("id"), .number("flags")] + Self.settings.map { .signed($0) }
    case .received, .wrote, .mostUnread, .renew: [.number("bytes")]
    case .ended: [.number("cut_off")]
    case .failed, .close: [.reason]
    case .elapsed, .probe, .deadlineMissed: [.number("unacknowledged")]
    case .taken: [.number("count")]
    case .request: [.serialAndType, .flagged("priority"), .sizes]
    case .streamRequest:
      [.serialAndType, .flagged("priority"), .sizes, .optional("credit"), .optional("window")]
    case .push: [.typeAndPriority, .size]
    case .encodedPush: [.type, .size]
    case .cancel: [.flagged("serial"), .optional("position"), .number("ordinal")]
    case .abandonResponse, .endItems, .lentItems: [.number("serial")]
    case .rejectStray: [.number("frame_kind"), .number("serial")]
    case .setPriority: [.number("serial"), .number("priority")]
    case .respond: [.pair("serial", "number"), .size]
    case .respondWith:
      [.pair("serial", "number"), .sizes, .flagged("code"), .number("dialect_code")]
    case .handlerReturned: [.pair("serial", "number")]
    case .sendItem: [.number("serial"), .size]
    case .tookItems, .tookUnread: [.number("serial"), .number("credit")]
    case .setPace, .unslowed: [.signed("nanoseconds")]
    case .admit: [.number("expires_in"), .number("retention"), .number("time")]
    case .turnAway: [.number("code")]
    case .learn: [.number("retention"), .number("time")]
    case .goAway:
      [.number("code"), .pair("spread", "retry_after"), .number("alternatives")]
    case .shutDown: [.optional("code")]
    }
  }

  /// The names of the settings behind the id and the flags.
  static let settings = [
    "max_body", "max_in_flight", "max_request_bytes", "heartbeat_interval", "heartbeat_timeout",
    "pace", "missed_deadlines", "handshake_timeout", "frame_timeout", "message_timeout",
    "writing_timeout", "max_unread", "encode_limit", "high_mark", "low_mark", "large_mark",
    "cancel_interval", "cancel_burst", "features", "first_window", "largest_window",
    "total_windows", "credential_bytes",
  ]
}
