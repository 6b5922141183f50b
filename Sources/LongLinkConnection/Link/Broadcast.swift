package import LongLinkCore

/// A push for many sessions, encoded once.
package struct Broadcast: Sendable {
  let type: MessageType
  let body: [UInt8]
  /// The whole frame, for sessions to which it goes as one.
  let frame: [UInt8]

  package init(
    _ type: MessageType, _ body: some BodyEncodable & Sendable
  ) throws(LongLinkError) {
    self.type = type
    do throws(BodyError) {
      self.body = try body.encodedBytes()
    } catch {
      throw LongLinkError(.encodingFailed, doing: "push type=\(type)", detail: "\(error)")
    }
    var outbox = Outbox()
    let head = FrameHead(
      .push, tag: type.rawValue, serial: Wire.plainPushSerial, length: self.body.count)
    let bytes = self.body
    outbox.encode(head) { span in bytes.encode(into: &span) }
    frame = outbox.takeEncoded()
  }
}

extension Link {
  /// Sends a broadcast's frame; a session that cannot take it is passed over.
  package func push(_ broadcast: Broadcast) {
    guard session.isOpen, session.accepts(bodyOf: broadcast.body.count) else { return }
    session.push(broadcast.type, broadcast.body, encoded: broadcast.frame)
    drain()
    writeAtEndOfTurn()
    arm()
  }
}
