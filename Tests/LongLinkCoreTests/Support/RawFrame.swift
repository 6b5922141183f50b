// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

/// A frame put together, and taken apart, by the words of wire.md instead of by the library.
struct RawFrame: Equatable {
  var kind: UInt8
  var flags: UInt8 = 0
  var tag: UInt32 = 0
  var serial: UInt32 = 0
  var body: [UInt8] = []

  init(
    _ kind: FrameKind, flags: FrameFlags = [], tag: UInt32 = 0, serial: UInt32 = 0,
    body: [UInt8] = []
  ) {
    self.init(wire: kind.rawValue, flags: flags.rawValue, tag: tag, serial: serial, body: body)
  }

  init(
    wire kind: UInt8, flags: UInt8 = 0, tag: UInt32 = 0, serial: UInt32 = 0, body: [UInt8] = []
  ) {
    self.kind = kind
    self.flags = flags
    self.tag = tag
    self.serial = serial
    self.body = body
  }

  var bytes: [UInt8] {
    var head = header(length: UInt32(body.count))
    head += RawFrame.big(RawFrame.sum(head + body))
    return head + body
  }

  /// The header alone, with a length that no body has to bear out.
  func headerBytes(length: UInt32) -> [UInt8] {
    header(length: length) + [0, 0, 0, 0]
  }

  private func header(length: UInt32) -> [UInt8] {
    RawFrame.big(UInt32(flags) << 30 | UInt32(kind) << 24 | tag) + RawFrame.big(serial)
      + RawFrame.big(length)
  }

  static func big(_ value: UInt32) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) }
  }

  static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 {
    bytes.reduce(0) { $0 << 8 | UInt32($1) }
  }

  /// Adler-32 as RFC 1950 defines it.
  static func sum(_ bytes: [UInt8]) -> UInt32 {
    var (low, high): (UInt32, UInt32) = (1, 0)
    for byte in bytes {
      low = (low &+ UInt32(byte)) % 65521
      high = (high &+ low) % 65521
    }
    return high << 16 | low
  }

  /// What the body of a control message says.
  func decoded<Message: ControlBody>(_ type: Message.Type = Message.self) throws -> Message {
    try unsafe Message(decoding: body.span.bytes)
  }

  /// All the whole frames at the front of `bytes`, and how many bytes they are.
  static func parse(_ bytes: [UInt8]) -> (frames: [RawFrame], consumed: Int) {
    var frames: [RawFrame] = []
    var offset = 0
    while bytes.count - offset >= 16 {
      let word = number(bytes[offset..<offset + 4])
      let length = Int(number(bytes[offset + 8..<offset + 12]))
      guard bytes.count - offset - 16 >= length else { break }
      let body = Array(bytes[offset + 16..<offset + 16 + length])
      precondition(
        number(bytes[offset + 12..<offset + 16]) == sum(bytes[offset..<offset + 12] + body),
        "a frame of ours is damaged")
      frames.append(
        RawFrame(
          wire: UInt8(word >> 24 & 0x3F), flags: UInt8(word >> 30), tag: word & 0xFF_FFFF,
          serial: number(bytes[offset + 4..<offset + 8]), body: body))
      offset += 16 + length
    }
    return (frames, offset)
  }
}
