// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

/// Decodes a stream of the native protocol.
enum NativeStream {
  static func items(in bytes: [UInt8], from sender: Role) -> [DecodedItem] {
    var (items, offset) = ([DecodedItem](), 0)
    let rules = Dissector.nativeRules(from: sender)
    let width = NativeLayout.headerLength
    var messages = NativeMessages()
    while offset < bytes.count {
      let left = bytes.count - offset
      guard left >= width else {
        items.append(
          DecodedItem(offset: offset, length: left, content: .unfinished(wanted: width)))
        return items
      }
      let frame = frame(in: bytes, at: offset)
      var problem = frame.head.map { brokenRule($0, rules) } ?? "\(Violation.Rule.unknownKind)"
      let total = width + frame.length
      let isEndless = frame.length > Int(Wire.defaultBody)
      if !isEndless, total <= left, !frame.isIntact {
        problem = "\(Violation.Rule.checksumMismatch)"
      }
      var decoded = frame.decoded
      if problem == nil, total > left {
        items.append(
          DecodedItem(offset: offset, length: left, content: .unfinished(wanted: total)))
        return items
      }
      if problem == nil, let head = frame.head {
        let body = bytes[offset + width..<offset + total]
        problem = messages.take(head, body, into: &decoded).map { "\($0)" }
      }
      guard let problem else {
        items.append(DecodedItem(offset: offset, length: total, content: .frame(decoded)))
        offset += total
        continue
      }
      // The length in a wrong header may be wrong too: skip the body only if the frame is whole.
      let length = !isEndless && total <= left ? total : width
      items.append(
        DecodedItem(offset: offset, length: length, content: .damage(problem, decoded)))
      offset += length
      guard length == total else { break }
    }
    if offset < bytes.count {
      items.append(DecodedItem(offset: offset, length: bytes.count - offset, content: .skipped))
    }
    return items
  }

  /// Decodes the frames of a recording, in their order: the kept bytes of each, and its size. The
  /// checksum over bytes that were left out or may have been blanked is not checked.
  static func items(
    of frames: [(kept: [UInt8], size: Int)], from sender: Role
  ) -> [DecodedItem] {
    var (items, offset) = ([DecodedItem](), 0)
    let rules = Dissector.nativeRules(from: sender)
    let width = NativeLayout.headerLength
    var messages = NativeMessages()
    for (kept, size) in frames {
      var content = DecodedItem.Content.begun(wanted: width)
      if kept.count >= width {
        let frame = frame(in: kept, at: 0, isSealed: !mayBeBlanked(kept))
        content = self.content(of: frame, kept, rules, &messages)
      }
      items.append(DecodedItem(offset: offset, length: size, content: content))
      offset += size
    }
    return items
  }

  private static func content(
    of frame: Frame, _ kept: [UInt8], _ rules: [DissectorRule], _ messages: inout NativeMessages
  ) -> DecodedItem.Content {
    let width = NativeLayout.headerLength
    let total = width + frame.length
    var decoded = frame.decoded
    guard let head = frame.head else { return .damage("\(Violation.Rule.unknownKind)", decoded) }
    var problem = brokenRule(head, rules)
    let body = kept[width..<min(total, kept.count)]
    if kept.count >= total, !mayBeBlanked(kept), !frame.isIntact {
      problem = "\(Violation.Rule.checksumMismatch)"
    }
    // The recording may end within a frame of credit, of which otherwise nothing is left out.
    if problem == nil, kept.count >= total || head.kind != .credit {
      problem = messages.take(head, body, into: &decoded).map { "\($0)" }
    } else {
      decoded.body = Array(body)
      decoded.leftOut = frame.length - body.count
    }
    return problem.map { .damage($0, decoded) } ?? .frame(decoded)
  }

  /// Whether the recorded frame may have had secrets: a hello, and a message with metadata.
  private static func mayBeBlanked(_ kept: [UInt8]) -> Bool {
    kept[0] & 0x80 != 0 || kept[0] & 0x3F == FrameKind.hello.rawValue
  }

  private struct Frame {
    /// Nil if the kind is unknown.
    let head: FrameHead?
    let length: Int
    let isIntact: Bool
    let decoded: DecodedFrame
  }

  private static func word(_ bytes: [UInt8], _ offset: Int) -> UInt32 {
    bytes[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) }
  }

  /// The frame at an offset. `isSealed` states that its checksum is over the bytes that are here.
  private static func frame(in bytes: [UInt8], at offset: Int, isSealed: Bool = true) -> Frame {
    let (word, serial) = (word(bytes, offset), word(bytes, offset + 4))
    let length = Int(self.word(bytes, offset + 8))
    let isWhole = length <= bytes.count - offset - NativeLayout.headerLength
    let (head, isIntact) = unsafe bytes.withUnsafeBytes { buffer -> (FrameHead?, Bool) in
      // There is a header at the offset, and a body if `isWhole`.
      let start = unsafe buffer.baseAddress! + offset
      let head = try? unsafe NativeLayout.head(at: start)
      guard isWhole else { return (head, false) }
      return (head, unsafe NativeLayout.isIntact(at: start, length: length))
    }
    let kind = UInt8(truncatingIfNeeded: word >> 24 & 0x3F)
    let tag = word & Wire.tagMask
    var decoded = DecodedFrame(
      kind: head.map { $0.kind == .ignorable ? "ignored" : "\($0.kind)" } ?? "unknown",
      serial: UInt64(serial))
    if let head {
      decoded.hasMore = head.flags.contains(.more)
      switch head.kind {
      case .request, .push: decoded.type = tag
      case .response:
        decoded.code = tag & Wire.codeMask
        decoded.isRefused = tag & Wire.refusedBit != 0
        decoded.codeName = Dissector.nativeCodes.first { $0.0.rawValue == decoded.code }?.1
      default: break
      }
    }
    decoded.fields = [
      DecodedItem.Field(name: "flags", value: "\(word >> 30)"),
      DecodedItem.Field(name: "kind", value: "0x\(String(kind, radix: 16)) (\(decoded.kind))"),
      DecodedItem.Field(name: "tag", value: "\(tag) (0x\(String(tag, radix: 16)))"),
      DecodedItem.Field(name: "serial", value: "\(serial)"),
      DecodedItem.Field(name: "length", value: "\(length)"),
      DecodedItem.Field(
        name: "checksum",
        value: "0x\(String(self.word(bytes, offset + 12), radix: 16))"
          + (isWhole && isSealed ? isIntact ? " (right)" : " (wrong)" : "")),
    ]
    return Frame(head: head, length: length, isIntact: isIntact, decoded: decoded)
  }

  /// The rule that a header alone breaks; nil if none.
  private static func brokenRule(_ head: FrameHead, _ rules: [DissectorRule]) -> String? {
    let kind = UInt32(head.kind.rawValue)
    let rule = rules.first { rule in
      rule.kinds?.contains(kind) == true && rule.serials?.contains(head.serial) != false
    }
    guard let rule else { return nil }
    func broken() -> Violation.Rule? {
      if let breaks = rule.breaks { return breaks }
      if rule.flags?.contains(UInt32(head.flags.rawValue)) == false { return .flagNotAllowed }
      if let serials = rule.mustSerials, !serials.contains(where: { $0.contains(head.serial) }) {
        return .serialOutOfRange
      }
      if let types = rule.mustTypes, !types.contains(where: { $0.contains(head.tag) }) {
        return .tagNotAllowed
      }
      if head.length > rule.limit ?? Int(Wire.defaultBody) { return .lengthOverLimit }
      if rule.sizes?.contains(head.length) == false { return .sizeNotAllowed }
      return nil
    }
    return broken().map { "\($0)" }
  }
}
