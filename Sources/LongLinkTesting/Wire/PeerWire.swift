// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// Encodes the frames of a scripted peer for one connection, natively or in a dialect.
struct PeerWire {
  let dialect: (any DialectFraming)?
  /// In a dialect, the message types of both sides' requests, by serial. Responses and cancels may
  /// have to contain the type.
  private var types: [UInt32: MessageType] = [:]

  init(_ dialect: (any DialectFraming)?) {
    self.dialect = dialect
  }

  /// The range of this side's serials; nil if a dialect's side cannot send requests.
  func serials(_ role: Role) -> ClosedRange<UInt32>? {
    guard let dialect else { return role.serials }
    return dialect.facts.serials
  }

  /// Remembers the message type of a request of either side.
  mutating func note(_ frame: WireFrame) {
    if dialect != nil, frame.kind == .request { types[frame.serial] = frame.type }
  }

  /// The pong for a ping.
  func pong(to ping: WireFrame) -> WireFrame {
    WireFrame(.pong, serial: ping.serial, body: dialect == nil ? ping.body : [])
  }

  /// The bytes of a frame. For a response, `about` is the type of its request, by default the type
  /// of the request with its serial. A frame that the dialect cannot express is a programming
  /// error.
  func bytes(of frame: WireFrame, about: MessageType? = nil, code: UInt32? = nil) -> [UInt8] {
    guard let dialect else { return frame.bytes }
    guard let kind = FrameKind(rawValue: frame.kind.rawValue) else {
      preconditionFailure("a dialect cannot express a frame of this kind")
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
    precondition(isSent, "the body contains the dialect's delimiter")
    return queue.takeAll()
  }

  /// The bytes of a frame with a wrong checksum, or a wrong last byte if it has no checksum.
  func corruptBytes(of frame: WireFrame, about: MessageType) -> [UInt8] {
    guard let dialect else { return frame.corruptBytes }
    var bytes = bytes(of: frame, about: about)
    bytes[dialect.checksumPlace(inFrameOf: bytes.count) ?? bytes.count - 1] ^= 0x01
    return bytes
  }
}
