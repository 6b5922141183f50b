// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
internal import LongLinkTransport

/// A push for many connections, encoded once.
package struct Broadcast: Sendable {
  let type: MessageType
  let body: [UInt8]
  /// The complete frame; empty if the body is too large for any connection.
  let frame: [UInt8]
  /// The dialect that encoded `frame`; nil for the native protocol.
  let dialect: (any DialectFraming)?
  /// Whether a connection that is above its high-water mark is closed; otherwise it is skipped.
  let closesSlow: Bool

  package init(
    _ type: MessageType, _ body: some BodyEncodable & Sendable, closingSlow closesSlow: Bool,
    in dialect: (any DialectFraming)? = nil
  ) throws(LongLinkError) {
    self.type = type
    self.closesSlow = closesSlow
    self.dialect = dialect
    do throws(BodyError) {
      try dialect?.validate(body)
      self.body = try body.encodedBytes()
    } catch {
      throw LongLinkError(.encodingFailed, doing: .push(type), detail: "\(error)")
    }
    if let objection = dialect?.objection(toPush: type) {
      throw LongLinkError(.unsupported, doing: .push(type), detail: objection)
    }
    guard self.body.count <= dialect?.facts.maximumBody ?? .max else {
      // The body is too large for every connection, so there is no frame.
      frame = []
      return
    }
    var outbox = Outbox(dialect: dialect)
    let head = FrameHead(
      .push, tag: type.rawValue, serial: Wire.plainPushSerial, length: self.body.count)
    let bytes = self.body
    outbox.encode(head) { span in bytes.encode(into: &span) }
    frame = outbox.takeEncoded()
  }
}

extension Broadcast {
  /// The result of a broadcast on one connection.
  package enum Placement: Sendable {
    case queued, skipped, dropped, tooLarge
  }

  /// Queues the frame on a link. A link without room for it is skipped or closed. Returns nil if
  /// the link is not open.
  package func send(on link: Link) -> Placement? {
    guard link.isOpen else { return nil }
    if body.count > link.connection.agreement.maxBody {
      link.count { $0.broadcastsSkipped += 1 }
      return .tooLarge
    }
    if link.connection.marks.admits(body.count) {
      if link.connection.settings.dialect === dialect {
        link.push(type, body, encoded: frame)
      } else {
        // The connection has a token of its own, so its frame is encoded again.
        link.push(type, count: body.count) { span in body.encode(into: &span) }
      }
      return .queued
    }
    if closesSlow {
      link.close(.unreadOutput)
      return .dropped
    }
    link.count { $0.broadcastsSkipped += 1 }
    return .skipped
  }
}
