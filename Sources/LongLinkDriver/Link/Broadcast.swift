// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
internal import LongLinkTransport

/// What a broadcast does with a connection that is above its high-water mark.
public enum SlowPeerPolicy: Hashable, Sendable {
  /// The connection is passed over, and counted.
  case skip
  /// The connection is ended for `unreadOutput`, and counted.
  case drop
}

/// What became of a broadcast.
public struct BroadcastReport: Hashable, Sendable {
  /// Connections to which the push was queued.
  public var queued = 0
  /// Connections that were passed over since they were above their high-water mark.
  public var skipped = 0
  /// Connections that were ended since they were above their high-water mark.
  public var dropped = 0
  /// Connections that were passed over since they do not accept a body of this size.
  public var tooLarge = 0

  /// Makes a report of nothing.
  public init() {}

  /// Adds what another part of the server did.
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
  /// The whole frame, for connections to which it goes as one.
  let frame: [UInt8]
  /// What it was encoded with, in a dialect.
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
      try dialect?.judge(body)
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

extension Link {
  /// Sends a broadcast's frame, or does what is to be done with a connection that cannot take it.
  package func push(_ broadcast: Broadcast, _ report: inout BroadcastReport) {
    guard isOpen else { return }
    if !accepts(bodyOf: broadcast.body.count) {
      report.tooLarge += 1
      core.skipBroadcast()
    } else if core.hasRoom(for: broadcast.body.count) {
      report.queued += 1
      if core.settings.dialect === broadcast.dialect {
        push(broadcast.type, broadcast.body, encoded: broadcast.frame)
      } else {
        // Its frames have a session prefix of their own.
        let body = broadcast.body
        push(broadcast.type, count: body.count) { span in body.encode(into: &span) }
      }
    } else if broadcast.policy == .skip {
      report.skipped += 1
      core.skipBroadcast()
    } else {
      report.dropped += 1
      close(.unreadOutput)
    }
  }
}
