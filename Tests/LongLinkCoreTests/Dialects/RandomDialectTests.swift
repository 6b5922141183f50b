// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDialects
import Testing

@Suite struct RandomDialectTests {
  /// A frame that a side may send, and what the other side should make of it; nil where the dice
  /// fell on something that the dialect cannot say.
  private func frame(
    _ side: DialectSide, _ dice: inout Seeded
  ) -> (bytes: [UInt8], expected: String)? {
    let (codec, dialect) = (side.codec, side.codec.dialect)
    let type = MessageType(rawValue: UInt32(dice.below(0x90)))!
    let body = dice.bytes(dice.below(min(dialect.maximumBody, 300) + 1))
    let plain = body.map { dice.below(3) == 0 ? $0 % 6 : $0 }
    func serial(_ range: ClosedRange<UInt32>, _ dice: inout Seeded) -> UInt32 {
      UInt32.random(in: range, using: &dice)
    }
    switch dice.below(6) {
    case 0:
      guard let range = codec.facts.serials else { return nil }
      let serial = serial(range, &dice)
      guard codec.canSendRequest(type, serial: serial) else { return nil }
      let head = FrameHead(.request, tag: type.rawValue, serial: serial, length: 0)
      return side.bytes(head, plain).map { ($0, "request \(type) \(serial) \(plain.count)") }
    case 1:
      guard let range = dialect.serials[codec.role.peer] else { return nil }
      let serial = serial(range, &dice)
      let peer = codec.mirrored
      guard peer.canSendRequest(type, serial: serial) else { return nil }
      let code: ResponseCode = dice.below(2) == 0 ? .ok : .overloaded
      guard codec.canSendResponse(code) else { return nil }
      let head = FrameHead(.response, tag: code.rawValue, serial: serial, length: 0)
      return side.bytes(head, about: type, plain).map {
        ($0, "response \(code) \(serial) \(plain.count)")
      }
    case 2:
      guard codec.canSendPush(type) else { return nil }
      let head = FrameHead(.push, tag: type.rawValue, length: 0)
      return side.bytes(head, plain).map { ($0, "push \(type) 1 \(plain.count)") }
    case 3:
      guard codec.canSendCancel(of: type), let range = codec.facts.serials else { return nil }
      let serial = serial(range, &dice)
      let head = FrameHead(.cancel, serial: serial, length: 0)
      let width = dialect.layout.shape(from: codec.role).header
        .first { $0.meaning == .serial }!.width
      let text =
        switch dialect.cancel!.target {
        case .serial: "cancel 0 \(serial) 0"
        case .type: "cancel \(type) 0 0"
        case .body: "cancel 0 \(serial) \(width)"
        }
      return side.bytes(head, about: type).map { ($0, text) }
    case 4:
      guard let serial = codec.pingSerial(UInt64(dice.below(20))) else { return nil }
      return (side.ping(serial), "ping 0 \(serial) 0")
    default:
      guard codec.facts.answersPings, let serial = codec.mirrored.pingSerial(UInt64(dice.below(20)))
      else { return nil }
      return (side.pong(serial), "pong 0 \(serial) 0")
    }
  }

  @Test(arguments: 0..<300)
  func `the frames of any dialect are decoded as they were encoded`(seed: Int) throws {
    var dice = Seeded(UInt64(seed))
    let dialect = try dice.dialect()
    for role in [Role.client, .server] {
      let writer = try DialectSide(dialect, role)
      var reader = try DialectSide(dialect, role.peer)
      var (bytes, expected) = ([UInt8](), [String]())
      for _ in 0..<40 {
        guard let (frame, text) = frame(writer, &dice) else { continue }
        bytes += frame
        expected.append(text)
      }
      var rest = bytes[...]
      while !rest.isEmpty {
        let count = dice.below(3) == 0 ? 1 : 1 + dice.below(200)
        reader.read(rest.prefix(count))
        rest = rest.dropFirst(count)
      }
      let different = zip(reader.heads, expected).first { $0 != $1 }
      #expect(different == nil, "\(dialect.layout.diagram)")
      #expect(reader.heads.count == expected.count, "\(dialect.layout.diagram)")
      #expect(reader.violation == nil && reader.damages.isEmpty && reader.waiting == 0)
    }
  }

  @Test(arguments: 0..<300)
  func `no bytes cause a trap, and none are kept for ever`(seed: Int) throws {
    var dice = Seeded(UInt64(seed) &+ 7_000)
    let dialect = try dice.dialect()
    let role: Role = seed.isMultiple(of: 2) ? .client : .server
    let writer = try DialectSide(dialect, role)
    var reader = try DialectSide(dialect, role.peer)
    let most = writer.codec.room(forBody: dialect.maximumBody) + 16
    for _ in 0..<60 where reader.violation == nil {
      var bytes = frame(writer, &dice)?.bytes ?? dice.bytes(dice.below(100))
      for _ in 0..<dice.below(3) where !bytes.isEmpty {
        switch dice.below(3) {
        case 0: bytes[dice.below(bytes.count)] = UInt8(dice.below(256))
        case 1: bytes.remove(at: dice.below(bytes.count))
        default: bytes.insert(UInt8(dice.below(7)), at: dice.below(bytes.count))
        }
      }
      var rest = bytes[...]
      while !rest.isEmpty {
        let count = 1 + dice.below(80)
        reader.read(rest.prefix(count))
        rest = rest.dropFirst(count)
        #expect(reader.violation != nil || reader.waiting <= most)
      }
      if dice.below(20) == 0 { reader.abandonFrame() }
    }
    let isDelimited = dialect.layout.delimiter != nil
    #expect(!isDelimited || reader.violation == nil)
    #expect(isDelimited || reader.damages.isEmpty)
  }
}
