// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
internal import LongLinkTransport

/// How a broadcast treats a connection that is above its high-water mark.
public enum SlowPeerPolicy: Hashable, Sendable {
  /// Skips the connection and counts it.
  case skip
  /// Closes the connection with `unreadOutput` and counts it.
  case drop
}

/// The number of connections that a broadcast reached, skipped and closed.
public struct BroadcastReport: Hashable, Sendable {
  /// Connections for which the push was queued.
  public var queued = 0
  /// Connections skipped because they were above their high-water mark.
  public var skipped = 0
  /// Connections closed because they were above their high-water mark.
  public var dropped = 0
  /// Connections skipped because they do not accept a body of this size.
  public var tooLarge = 0

  /// Makes a report whose counts are zero.
  public init() {}

  /// Adds the counts of another lane of the server.
  package static func += (lhs: inout BroadcastReport, rhs: BroadcastReport) {
    lhs.queued += rhs.queued
    lhs.skipped += rhs.skipped
    lhs.dropped += rhs.dropped
    lhs.tooLarge += rhs.tooLarge
  }
}

/// A push for many connections, encoded once.
package struct Broadcast: Sendable {
  let type: MessageType
  let body: [UInt8]
  /// The complete frame; empty if the body is too large for any connection.
  let frame: [UInt8]
  /// The dialect that encoded `frame`; nil for the native protocol.
  let dialect: (any DialectFraming)?
  let policy: SlowPeerPolicy

  package init(
    _ type: MessageType, _ body: some BodyEncodable & Sendable, toSlow policy: SlowPeerPolicy,
    in dialect: (any DialectFraming)? = nil
  ) throws(LongLinkError) {
    self.type = type
    self.policy = policy
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
      // No connection accepts it.
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
  /// Queues the frame on a link, or applies the policy if that has no room for it.
  package func send(on link: Link, _ report: inout BroadcastReport) {
    guard link.isOpen else { return }
    if !link.accepts(bodyOf: body.count) {
      report.tooLarge += 1
      link.count { $0.broadcastsSkipped += 1 }
    } else if link.hasRoom(for: body.count) {
      report.queued += 1
      if link.speaks(dialect) {
        link.push(type, body, encoded: frame)
      } else {
        // This connection's frames have a different session prefix.
        link.push(type, count: body.count) { span in body.encode(into: &span) }
      }
    } else if policy == .skip {
      report.skipped += 1
      link.count { $0.broadcastsSkipped += 1 }
    } else {
      report.dropped += 1
      link.close(.unreadOutput)
    }
  }
}
