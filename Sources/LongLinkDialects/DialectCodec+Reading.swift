// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

extension DialectCodec {
  /// The decoded fields of a header.
  struct Facts {
    var kind: FrameKind
    var type: UInt64?
    var serial: UInt64
    var code: UInt32
    /// The length of the body; nil if the layout has no length.
    var length: Int?

    func violation(
      _ rule: Violation.Rule, _ value: UInt64? = nil, expected: UInt64? = nil
    ) -> Violation {
      Violation(
        rule, kind: kind.rawValue, serial: UInt32(exactly: serial), value: value,
        expected: expected)
    }
  }

  /// Decodes and checks a complete header.
  func validate(header bytes: UnsafeRawBufferPointer) throws(Violation) -> Facts {
    // Every slot is within the header, whose bytes the caller guarantees.
    let start = bytes.baseAddress!
    let type = unsafe incoming.type?.read(start)
    let serial = unsafe incoming.serial.read(start)
    for literal in incoming.literals where !literal.slot.isTrailer {
      let value = unsafe literal.slot.read(start)
      guard value == literal.value else {
        throw Violation(
          .fieldMismatch, serial: UInt32(exactly: serial), value: value, expected: literal.value)
      }
    }
    if let slot = incoming.repeatedType, !slot.isTrailer {
      let again = unsafe slot.read(start)
      guard again == type else {
        throw Violation(
          .fieldMismatch, serial: UInt32(exactly: serial), value: again, expected: type)
      }
    }
    var facts = Facts(
      kind: try kind(incoming: type, serial), type: type, serial: serial,
      code: unsafe UInt32(clamping: incoming.code?.read(start) ?? 0))
    if let slot = incoming.length {
      let stated = unsafe slot.read(start)
      guard stated >= UInt64(incoming.lengthBias) else {
        throw facts.violation(.sizeNotAllowed, stated)
      }
      let length = stated - UInt64(incoming.lengthBias)
      guard length <= UInt64(maximumIncoming) else {
        throw facts.violation(.lengthOverLimit, length)
      }
      facts.length = Int(length)
    }
    if isCancelByBody(facts), let length = facts.length, length != incoming.serial.width {
      throw facts.violation(.sizeNotAllowed, UInt64(length))
    }
    return facts
  }

  private func isCancelByBody(_ facts: Facts) -> Bool {
    facts.kind == .cancel && dialect.cancel?.target == .body
  }

  /// Checks the rest of a frame, and translates it to the terms of the native protocol.
  func frame(
    _ facts: Facts, _ bytes: UnsafeRawBufferPointer, _ body: Range<Int>, length: Int
  ) throws(Violation) -> DialectFrame {
    // The caller guarantees the body and the trailer.
    let start = bytes.baseAddress!
    let trailer = unsafe start + body.upperBound
    for literal in incoming.literals where literal.slot.isTrailer {
      let value = unsafe literal.slot.read(trailer)
      guard value == literal.value else {
        throw facts.violation(.fieldMismatch, value, expected: literal.value)
      }
    }
    if let slot = incoming.repeatedType, slot.isTrailer {
      let again = unsafe slot.read(trailer)
      guard again == facts.type else {
        throw facts.violation(.fieldMismatch, again, expected: facts.type)
      }
    }
    if let sum = incoming.sum {
      let stated = unsafe sum.slot.read(sum.slot.isTrailer ? trailer : start)
      guard unsafe stated == UInt64(sum.value(bytes, body)) else {
        throw facts.violation(.checksumMismatch)
      }
    }
    return DialectFrame(
      head: try unsafe head(facts, bytes, body), type: UInt32(clamping: facts.type ?? 0),
      serial: facts.serial, code: facts.code, body: body, length: length)
  }

  private func head(
    _ facts: Facts, _ bytes: UnsafeRawBufferPointer, _ body: Range<Int>
  ) throws(Violation) -> FrameHead {
    var head = FrameHead(
      facts.kind, serial: UInt32(exactly: facts.serial) ?? 0, length: body.count)
    switch facts.kind {
    case .request:
      head.tag = UInt32(facts.type ?? 0)
    case .push:
      head.tag = UInt32(facts.type ?? 0)
      head.serial = Wire.plainPushSerial
    case .response:
      // Without a code every response is a success.
      let code = incoming.code == nil ? .ok : dialect.codes?.native(of: facts.code) ?? .ok
      head.tag = code.rawValue
    case .cancel:
      switch dialect.cancel?.target {
      case .serial, nil: break
      case .type:
        head.tag = UInt32(facts.serial)
        head.serial = 0
      case .body:
        guard body.count == incoming.serial.width else {
          throw facts.violation(.sizeNotAllowed, UInt64(body.count))
        }
        // The body is as wide as the serial field, by the guard above.
        let place = unsafe bytes.baseAddress! + body.lowerBound - incoming.serial.offset
        let serial = unsafe incoming.serial.read(place)
        guard let narrow = UInt32(exactly: serial), dialect.serials[role.peer]!.contains(narrow)
        else { throw facts.violation(.serialOutOfRange, serial) }
        head.serial = narrow
      }
    case .ping, .pong, .item, .end, .credit, .renewal, .hello, .welcome, .goaway, .ignorable:
      break
    }
    return head
  }
}
