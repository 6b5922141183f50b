// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// What a packet of a recording says: a frame or an event by its name, and its values by theirs.
/// All texts are safe for terminals.
package struct RecordedStep: Sendable {
  package enum Value: Equatable, Sendable {
    case number(UInt64)
    case signed(Int64)
    case text(String)
    /// A message type, and its name; nil if the recording has none.
    case type(UInt32, String?)
  }

  package typealias Values = [(name: String, value: Value)]

  package let direction: RecordingWriter.Direction
  package let isFrame: Bool
  /// The kind of the frame, or the name of the event.
  package let name: String
  package let values: Values

  /// Describes a packet; `names` are those of message types.
  package init(_ packet: RecordingFile.Packet, names: [UInt32: String]) {
    switch packet.content {
    case .frame(let direction, let kept, let size):
      self.direction = direction
      isFrame = true
      (name, values) = Self.frame(kept, size, names)
    case .event(let event):
      direction = .neither
      isFrame = false
      name = event.event?.name ?? "unknown"
      values = Self.event(event, names)
    }
  }

  /// The name and the values on one line, without the settings of a connection.
  package var text: String {
    let settings = RecordedEvent.settings
    let parts = values.filter { !settings.contains($0.name) }.map { name, value -> String in
      switch value {
      case .number(let number): "\(name)=\(number)"
      case .signed(let number): "\(name)=\(number)"
      case .text(let text): text.contains(" ") ? "\(name)=\"\(text)\"" : "\(name)=\(text)"
      case .type(let type, let known): "\(name)=\(known ?? "\(type)")"
      }
    }
    return ([name] + parts).joined(separator: " ")
  }

  /// Whether the event only counts bytes or time, or says how often something was taken.
  package var isBookkeeping: Bool {
    let names: [RecordedEvent] = [
      .received, .receivedPart, .wrote, .taken, .elapsed, .handlersHadTurn, .handlersTurnEnds,
    ]
    return !isFrame && names.contains { $0.name == name }
  }

  static func type(_ type: UInt32, _ names: [UInt32: String]) -> Value {
    .type(type, names[type].map { PeerText($0).description })
  }

  // MARK: - Frames

  private static func frame(
    _ kept: [UInt8], _ size: Int, _ names: [UInt32: String]
  ) -> (String, Values) {
    guard kept.count >= NativeLayout.headerLength else {
      return ("incomplete", [("size", .number(UInt64(kept.count)))])
    }
    func number(_ range: Range<Int>) -> UInt32 { kept[range].reduce(0) { $0 << 8 | UInt32($1) } }
    let (word, serial, length) = (number(0..<4), number(4..<8), Int(number(8..<12)))
    let tag = word & Wire.tagMask
    let kind = FrameKind(wire: UInt8(truncatingIfNeeded: word >> 24) & 0x3F)
    var values: Values = []
    switch kind {
    case .request, .push: values.append(("type", type(tag, names)))
    case .response:
      values.append(("code", .number(UInt64(tag & Wire.codeMask))))
      if tag & Wire.refusedBit != 0 { values.append(("refused", .number(1))) }
    default: break
    }
    values.append(("serial", .number(UInt64(serial))))
    var body = length
    if [.request, .response, .push].contains(kind), word >> 31 == 1, kept.count >= 18 {
      let metadata = Int(number(16..<18))
      values.append(("metadata", .number(UInt64(metadata))))
      body = max(0, length - 2 - metadata)
    }
    if word >> 30 & 1 == 1 { values.append(("more", .number(1))) }
    values.append(("body", .number(UInt64(body))))
    let leftOut = max(0, size - kept.count)
    if leftOut > 0 { values.append(("left_out", .number(UInt64(leftOut)))) }
    return (kind.map { $0 == .ignorable ? "ignored" : "\($0)" } ?? "unknown", values)
  }

  // MARK: - Events

  private static func event(_ event: RecordingFile.Event, _ names: [UInt32: String]) -> Values {
    var values: Values = []
    if event.taken > 0 { values.append(("takes", .number(UInt64(event.taken)))) }
    guard let known = event.event else {
      values.append(("code", .number(UInt64(event.code))))
      return values
    }
    if known == .effect { return values + effect(event.numbers, names) }
    var rest = event.numbers[...]
    for form in known.forms {
      values += form.values(of: &rest, names)
    }
    return values + text(event, known)
  }

  /// What the bytes of an event say.
  private static func text(_ event: RecordingFile.Event, _ known: RecordedEvent) -> Values {
    guard !event.bytes.isEmpty, known != .names else { return [] }
    switch known {
    case .began:
      let lines = event.bytes.split(separator: 10, maxSplits: 2, omittingEmptySubsequences: false)
      return zip(["peer", "way", "own_name"], lines).filter { !$0.1.isEmpty }
        .map { ($0.0, .text(PeerText(utf8: $0.1).description)) }
    case .admit, .learn:
      return [("key_space", .text(PeerText(utf8: Self.hex(event.bytes).utf8).description))]
    default:
      let parts = event.bytes.split(separator: 0, omittingEmptySubsequences: false)
      return parts.enumerated().map { index, part in
        (index == 0 ? "reason" : "alternative_\(index)", .text(PeerText(utf8: part).description))
      }
    }
  }

  private static func hex(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  private static func effect(_ numbers: [UInt64], _ names: [UInt32: String]) -> Values {
    let known = RecordedEffect.names
    let index = Int(clamping: numbers[0]) - 1
    let name = known.indices.contains(index) ? known[index] : "\(numbers[0])"
    var values: Values = [("effect", .text(name))]
    func kind(_ number: UInt64) -> Value {
      FrameKind(rawValue: UInt8(clamping: number)).map { .text("\($0)") } ?? .number(number)
    }
    switch name {
    case "close", "abandon": values += RecordedForm.reason(numbers[1], numbers[2])
    case "message":
      values += [("frame_kind", kind(numbers[1])), ("serial", .number(numbers[2]))]
    case "stray":
      values += [("serial", .number(numbers[1])), ("frame_kind", kind(numbers[2]))]
    case "peerLeaving", "renewed": values.append(("code", .number(numbers[1])))
    case "collect", "finished", "itemSent", "stuck", "overLimit":
      values.append(("serial", .number(numbers[1])))
    case "began": values += [("serial", .number(numbers[1])), ("ordinal", .number(numbers[2]))]
    case "cancel": values += [("serial", .number(numbers[1])), ("number", .number(numbers[2]))]
    case "ponged":
      values += [("number", .number(numbers[1])), ("nanoseconds", .number(numbers[2]))]
    case "heartbeatAnswered": values.append(("nanoseconds", .number(numbers[1])))
    case "refused":
      let (type, code) = RecordedNumber.pair(numbers[2])
      values += [
        ("serial", .number(numbers[1])), ("type", self.type(type, names)),
        ("code", .number(UInt64(code))),
      ]
    default: break
    }
    values.append(("frames", .number(numbers[3])))
    return values
  }
}
