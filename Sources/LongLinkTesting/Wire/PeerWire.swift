// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// How the frames of a scripted peer are written, on one connection: natively, or in a dialect.
struct PeerWire {
  let dialect: (any DialectFraming)?
  /// In a dialect: the types of the requests of both sides, by their serials. A response, or a
  /// cancel, may have to name them.
  private var types: [UInt32: MessageType] = [:]

  init(_ dialect: (any DialectFraming)?) {
    self.dialect = dialect
  }

  /// The serials of this side's requests; nil where it may not ask.
  func serials(_ role: Role) -> ClosedRange<UInt32>? {
    guard let dialect else { return role.serials }
    return dialect.facts.serials
  }

  /// Notes a request of either side.
  mutating func note(_ frame: WireFrame) {
    if dialect != nil, frame.kind == .request { types[frame.serial] = frame.type }
  }

  /// The answer to a ping.
  func pong(to ping: WireFrame) -> WireFrame {
    WireFrame(.pong, serial: ping.serial, body: dialect == nil ? ping.body : [])
  }

  /// A frame's bytes, of which a response answers a request of type `about`; nil for that with its
  /// serial. One that a dialect has no word for is a programming error.
  func bytes(of frame: WireFrame, about: MessageType? = nil, code: UInt32? = nil) -> [UInt8] {
    guard let dialect else { return frame.bytes }
    guard let kind = FrameKind(rawValue: frame.kind.rawValue) else {
      preconditionFailure("a dialect has no word for a frame of this kind")
    }
    var head = FrameHead(
      kind, tag: code ?? frame.tag, serial: frame.serial,
      about: (about ?? types[frame.serial])?.rawValue ?? 0,
      length: frame.body.count)
    if code != nil { head.flags.insert(.ownCode) }
    var queue = ByteQueue()
    let isSent = queue.append(capacity: dialect.room(forBody: frame.body.count)) { span in
      let start = dialect.begin(&span)
      frame.body.encode(into: &span)
      return dialect.finish(head, from: start, in: &span)
    }
    precondition(isSent, "the body holds the dialect's delimiter")
    return queue.takeAll()
  }

  /// A frame's bytes with a wrong checksum, or a wrong last byte where there is none.
  func corruptBytes(of frame: WireFrame, about: MessageType) -> [UInt8] {
    guard let dialect else { return frame.corruptBytes }
    var bytes = bytes(of: frame, about: about)
    bytes[dialect.checksumPlace(inFrameOf: bytes.count) ?? bytes.count - 1] ^= 0x01
    return bytes
  }
}
