// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

// What the peer says, and pushes of this side.
extension FuzzSide {
  func sealed(_ kind: UInt8, _ tag: UInt32, _ serial: UInt32, _ body: [UInt8]) -> [UInt8] {
    let word = UInt32(kind) << 24 | tag & Wire.tagMask
    var bytes: [UInt8] = []
    for value in [word, serial, UInt32(body.count)] {
      for shift in [24, 16, 8, 0] {
        bytes.append(UInt8(truncatingIfNeeded: value >> UInt32(shift)))
      }
    }
    let header = unsafe Adler32.checksum(of: bytes.span.bytes)
    let sum = unsafe Adler32.checksum(of: body.span.bytes, continuing: header)
    for shift in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: sum >> UInt32(shift))) }
    return bytes + body
  }

  /// A greeting or a goaway. A welcome that agrees to requests that run once states where keys are
  /// kept, as far as the input lets it.
  func greeting(_ input: inout FuzzInput) -> [UInt8] {
    let kind: FrameKind = input.pick(role == .server ? .hello : .welcome, .goaway)
    let serial = kind == .goaway ? Wire.goawaySerial : Wire.handshakeSerial
    let features = input.byte() & 31
    let isWhole = input.byte() & 7 != 7
    var body = [0x10, features]
    if kind == .welcome, features & 16 != 0 {
      body += [0x62, 16] + terms.space.bytes + (isWhole ? [0x68, 0x64, 0x70, 1] : [0x68, 0x64])
    }
    return sealed(kind.rawValue, 0, serial, body + input.take(Int(input.byte() % 16)))
  }

  func push(_ type: MessageType, _ count: Int) {
    guard connection.isOpen, count <= connection.agreement.maxBody,
      connection.framing.objection(toPush: type) == nil
    else { return }
    let body = [UInt8](repeating: 5, count: count)
    connection.push(type, count: count, at: now) { span in body.encode(into: &span) }
  }
}
